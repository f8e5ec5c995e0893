// What other viewers read says what the timeline says: both exports are decoded here by readers of their own.
#include "hw/error.h"

#include "tests/catch.h"

#include <bit>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/process.h"
#include "viz/export/chrome_trace.h"
#include "viz/export/perfetto_trace.h"

namespace {

using namespace moebius;

// Two ranks. The first computes and sends, the second receives and computes; its name needs escaping.
Timeline two_ranks() {
  Timeline t;
  t.facts = {{"scenario", "a \"quoted\" name"}};
  t.fragments = {"forward stage 0", "forward stage 1"};
  t.counters = {"memory"};
  t.class_ranks = {0, 4};
  t.class_sizes = {4, 1};
  t.ops = {{.kind = OpKind::kGemm, .role = Role::kQkv, .layer = 3, .fragment = 0, .index = 0},
           {.kind = OpKind::kSend, .lane = Lane::kSendForward, .fragment = 0, .index = 1, .payload = 64},
           {.kind = OpKind::kRecv, .lane = Lane::kRecvForward, .fragment = 1, .index = 0, .payload = 64}};
  t.submissions = {{0, 0, 0, 0, 7}, {1, 1, 1, 0, 7}};
  t.spans = {{.sequence = 0, .op = 0, .start = {0}, .end = {1500}},
             {.sequence = 0, .op = 1, .lane = Lane::kSendForward, .start = {1500}, .end = {2007}},
             {.sequence = 1,
              .op = 0,
              .rank_class = 1,
              .lane = Lane::kRecvForward,
              .start = {0},
              .end = {2007},
              .work_start = {1500}}};
  t.samples = {{0, 1, {1000}, 2.5}};
  return t;
}

std::string exported(const Timeline& timeline, void (*write)(const SpanColumns&, const std::string&)) {
  const test::Scratch scratch;
  save_timeline(timeline, scratch.path("t.mtl"));
  write(SpanColumns(scratch.path("t.mtl")), scratch.path("out"));
  return test::text_of(scratch.path("out"));
}

// A decoder of protobuf's wire format: the fields of one message, in order.
struct Field {
  int number = 0;
  std::uint64_t value = 0;  // varint and fixed64
  std::string bytes;        // length-delimited
};

std::vector<Field> decode(const std::string& bytes) {
  std::vector<Field> fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.size()) {
    const std::uint64_t key = varint();
    Field field{static_cast<int>(key >> 3), 0, ""};
    if ((key & 7) == 0) {
      field.value = varint();
    } else if ((key & 7) == 1) {
      for (int i = 0; i < 8; ++i)
        field.value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(at++))) << (8 * i);
    } else {
      REQUIRE((key & 7) == 2);
      const std::size_t size = varint();
      field.bytes = bytes.substr(at, size);
      REQUIRE(field.bytes.size() == size);
      at += size;
    }
    fields.push_back(field);
  }
  return fields;
}

const Field* find(const std::vector<Field>& fields, int number) {
  for (const Field& field : fields)
    if (field.number == number) return &field;
  return nullptr;
}

}  // namespace

TEST_CASE("a Chrome trace has a complete event for each span with its time in microseconds") {
  const auto trace = nlohmann::json::parse(exported(two_ranks(), viz::export_chrome));
  CHECK(trace["otherData"]["scenario"] == "a \"quoted\" name");
  std::vector<nlohmann::json> spans, counters;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
    if (event["ph"] == "C") counters.push_back(event);
  }
  REQUIRE(spans.size() == 3);
  CHECK(spans[0]["name"] == "gemm qkv L3");
  CHECK(spans[0]["dur"] == 1.5);
  CHECK(spans[1]["ts"] == 1.5);
  CHECK(spans[1]["dur"] == 0.507);               // 2,007 - 1,500 ns
  CHECK(spans[2]["pid"] == 4);                   // the rank
  CHECK(spans[2]["args"]["waiting_us"] == 1.5);  // of the receive, till the send begins
  CHECK_FALSE(spans[1]["args"].contains("waiting_us"));
  CHECK(spans[2]["args"]["microbatch"] == 7);
  REQUIRE(counters.size() == 1);
  CHECK(counters[0]["args"]["value"] == 2.5);
}

TEST_CASE("spans that are whole submissions are called after their fragments") {
  Timeline whole = two_ranks();
  whole.facts.emplace_back("timeline_detail", "steps");
  const auto trace = nlohmann::json::parse(exported(whole, viz::export_chrome));
  std::vector<std::string> names;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") names.push_back(event["name"]);
  CHECK(names == std::vector<std::string>{"forward stage 0", "forward stage 0", "forward stage 1"});
  const std::string perfetto = exported(whole, viz::export_perfetto);
  CHECK(perfetto.find("gemm qkv") == std::string::npos);
  CHECK(perfetto.find("forward stage 1") != std::string::npos);
}

TEST_CASE("a flow leads from a send to the receive of its microbatch") {
  const auto trace = nlohmann::json::parse(exported(two_ranks(), viz::export_chrome));
  std::map<std::string, nlohmann::json> flow;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "s" || event["ph"] == "f") flow[event["ph"]] = event;
  REQUIRE(flow.size() == 2);
  CHECK(flow["s"]["id"] == flow["f"]["id"]);
  CHECK(flow["s"]["pid"] == 0);
  CHECK(flow["f"]["pid"] == 4);
}

TEST_CASE("a Perfetto trace begins and ends each span on the track of its lane") {
  std::map<std::uint64_t, std::string> names, tracks;  // by interned id, by uuid
  struct Slice {
    std::string name, track;
    std::uint64_t begin = 0, end = 0, flow = 0;
  };
  std::vector<Slice> slices;
  std::vector<double> samples;
  for (const Field& packet : decode(exported(two_ranks(), viz::export_perfetto))) {
    REQUIRE(packet.number == 1);  // Trace.packet
    const auto fields = decode(packet.bytes);
    if (const Field* interned = find(fields, 12))
      for (const Field& entry : decode(interned->bytes))
        if (entry.number == 2)
          names[find(decode(entry.bytes), 1)->value] = find(decode(entry.bytes), 2)->bytes;
    if (const Field* descriptor = find(fields, 60)) {
      const auto track = decode(descriptor->bytes);
      const Field* name = find(track, 2);
      tracks[find(track, 1)->value] = name != nullptr ? name->bytes : "process";
    }
    const Field* event = find(fields, 11);
    if (event == nullptr) continue;
    const auto told = decode(event->bytes);
    const std::uint64_t type = find(told, 9)->value, time = find(fields, 8)->value;
    const std::string& track = tracks.at(find(told, 11)->value);
    if (type == 1)
      slices.push_back({names.at(find(told, 10)->value), track, time, 0,
                        find(told, 47) != nullptr ? find(told, 47)->value : 0});
    if (type == 2) slices.back().end = time;
    if (type == 4) samples.push_back(std::bit_cast<double>(find(told, 44)->value));
  }
  REQUIRE(slices.size() == 3);
  CHECK(slices[0].name == "gemm qkv L3");
  CHECK(slices[0].track == "compute");
  CHECK(slices[0].end == 1500);
  CHECK(slices[1].track == "send_forward");
  CHECK(slices[1].begin == 1500);
  CHECK(slices[1].end == 2007);
  CHECK(slices[0].flow == 0);
  CHECK(slices[1].flow != 0);
  CHECK(slices[1].flow == slices[2].flow);
  CHECK(samples == std::vector<double>{2.5});
}

TEST_CASE("Perfetto's export decodes with protoc") {
  if (test::run("protoc --version").exit_code != 0) {
    WARN("skipped: protoc is not installed (protobuf-compiler)");
    return;
  }
  const test::Scratch scratch;
  scratch.write("trace", exported(two_ranks(), viz::export_perfetto));
  const auto decoded = test::run("protoc --decode_raw < " + scratch.path("trace"));
  CHECK(decoded.exit_code == 0);
  CHECK(decoded.out.find("\"ranks like 0 (x4)\"") != std::string::npos);
}

TEST_CASE("a span that names no op is an error of the file, not of the reader") {
  const test::Scratch scratch;
  save_timeline(two_ranks(), scratch.path("t.mtl"));
  std::string bytes = test::text_of(scratch.path("t.mtl"));
  // Column by column the spans stand last; with three of them each column is a multiple of 8 bytes but these:
  // their op indices follow the sequences 0, 0, 1.
  const std::string sequences("\0\0\0\0\0\0\0\0\1\0\0\0", 12), ops("\0\0\0\0\1\0\0\0\0\0\0\0", 12);
  const std::size_t at = bytes.rfind(sequences + std::string(4, '\0') + ops);
  REQUIRE(at != std::string::npos);
  bytes[at + 16 + 4] = 9;  // of three ops
  const SpanColumns broken(scratch.write("broken.mtl", bytes));
  CHECK_NOTHROW(broken.checked_row(0));
  CHECK_THROWS_AS(broken.checked_row(1), Error);
  CHECK_THROWS_AS(broken.span(1), Error);
  CHECK_THROWS_AS(viz::export_chrome(broken, scratch.path("out")), Error);
  CHECK_FALSE(std::filesystem::exists(scratch.path("out")));
}

TEST_CASE("export asks for a format and a run that exists") {
  const auto none = test::run_moebius("export nowhere");
  CHECK(none.exit_code == 2);
  CHECK(none.err == "moebius: export: expected --chrome FILE or --perfetto FILE, found neither\n");
  CHECK(test::run_moebius("export nowhere --chrome x").exit_code == 2);
}

// Viewers end the slice that began last.
TEST_CASE("spans of a lane that overlap stand on tracks of their own") {
  Timeline both = two_ranks();
  both.ops.insert(both.ops.begin() + 2, {.kind = OpKind::kNorm, .second = 1, .fragment = 0, .index = 2});
  both.submissions[0].second_microbatch = 8;
  both.spans.insert(both.spans.begin() + 2, {.sequence = 0, .op = 2, .start = {500}, .end = {2000}});
  const auto trace = nlohmann::json::parse(exported(both, viz::export_chrome));
  std::map<std::string, nlohmann::json> spans;
  std::map<std::int64_t, std::string> threads;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") spans[event["name"]] = event;
    if (event["name"] == "thread_name" && event["pid"] == 0) threads[event["tid"]] = event["args"]["name"];
  }
  CHECK(threads.at(spans.at("gemm qkv L3")["tid"]) == "compute");
  CHECK(threads.at(spans.at("norm")["tid"]) == "compute 2");
  CHECK(spans.at("gemm qkv L3")["args"]["microbatch"] == 7);
  CHECK(spans.at("norm")["args"]["microbatch"] == 8);
  const std::string perfetto = exported(both, viz::export_perfetto);
  CHECK(perfetto.find("compute 2") != std::string::npos);
  CHECK(exported(two_ranks(), viz::export_perfetto).find("compute 2") == std::string::npos);
}
