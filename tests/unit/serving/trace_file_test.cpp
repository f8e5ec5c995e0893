// Traces of each form, right and wrong.
#include "workloads/serving/traffic/trace_file.h"

#include <filesystem>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"
#include "workloads/routing/random_stream.h"
#include "workloads/serving/traffic/traffic_source.h"

namespace moebius {
namespace {

using namespace literals;

std::vector<TrafficRequest> all_of(TrafficStream& traffic) {
  std::vector<TrafficRequest> requests;
  TrafficRequest request;
  while (traffic.next(request)) requests.push_back(request);
  return requests;
}

std::vector<TrafficRequest> read(const std::string& text, TraceFormat format = TraceFormat::kAuto) {
  const test::Scratch scratch;
  return all_of(*open_trace({scratch.write("trace", text), format, 512}));
}

// What is said after the file's name.
std::string trace_refusal(const std::string& text, TraceFormat format = TraceFormat::kAuto) {
  const test::Scratch scratch;
  const std::string path = scratch.write("trace", text);
  try {
    all_of(*open_trace({path, format, 512}));
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return std::string(error.what()).substr(path.size());
  }
  return "";
}

const std::string kRow =
    R"({"timestamp": 1500, "input_length": 600, "output_length": 7, "hash_ids": [4, 9]})";

std::string pack(const std::string& text, const test::Scratch& scratch) {
  const std::string path = scratch.write("trace.jsonl", text);
  REQUIRE(test::run("gzip " + path).exit_code == 0);
  return path + ".gz";
}

}  // namespace

TEST_CASE("a Mooncake row is a request with a block for every 512 tokens") {
  const std::vector<TrafficRequest> requests =
      read(kRow + "\n" + R"({"timestamp": 1700, "input_length": 1, "output_length": 1})" + "\n");
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].arrival == 0_s);  // wherever in a trace it stands
  CHECK(requests[1].arrival == 200_ms);
  CHECK(requests[0].input_tokens == 600);
  CHECK(requests[0].output_tokens == 7);
  CHECK(requests[0].blocks == std::vector<std::uint64_t>{4, 9});
  CHECK(requests[0].block_tokens == 512);
  CHECK(requests[0].session == -1);
}

TEST_CASE("a packed trace and a plain one are read alike") {
  const test::Scratch scratch;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += kRow + "\r\n";
  const std::string path = pack(text, scratch);
  CHECK(all_of(*open_trace({path})).size() == 3000);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  CHECK_THROWS_WITH(all_of(*open_trace({path})),
                    Catch::Contains("the packed file is damaged or cut after line"));
}

TEST_CASE("ids keep their 64 bits") {
  // Two that differ in the lowest bit only; as double numbers they would be equal.
  const auto requests = read(
      R"({"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [18446744073709551614, 18446744073709551615]})");
  CHECK(requests[0].blocks == std::vector<std::uint64_t>{18446744073709551614u, 18446744073709551615u});
}

TEST_CASE("keys that others added are read or passed over") {
  const auto requests = read(
      R"({"session_id": "a", "timestamp": 10.5, "input_length": 64, "output_length": 1, "hash_ids": [1, 2], "block_size": 32, "request_id": 7, "text_input": "x"})"
      "\n"
      R"({"session_id": "b", "delay": 20, "input_length": 64, "output_length": 1, "wait_for": ["x"], "branches": [{"y": [1]}]})"
      "\n"
      R"({"session_id": "a", "delay": 20, "tool_wait_ms": 30, "input_length": 9, "output_length": 1, "priority": {"level": 3}})");
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].arrival == 0_s);
  CHECK(requests[0].block_tokens == 32);
  CHECK(requests[1].blocks.empty());
  CHECK(requests[1].session == 1);
  CHECK(requests[2].session == 0);
  CHECK(requests[2].pause == 50_ms);
  CHECK(requests[1].follows == -1);
  CHECK(requests[2].follows == 0);
  CHECK(requests[2].arrival == requests[0].arrival);
}

TEST_CASE("deltas come after all that their session said and was answered") {
  // 4 + 2 answered + 2 new = 8 tokens; the third row begins anew.
  const auto requests = read(
      R"({"session_id": "s", "timestamp": 0, "input_length": 4, "output_length": 2, "hash_ids": [1], "block_size": 4})"
      "\n"
      R"({"session_id": "s", "delay": 5, "input_length": 2, "output_length": 1, "hash_ids": [2], "block_size": 4})"
      "\n"
      R"({"session_id": "s", "delay": 5, "input_length": 3, "output_length": 1, "hash_ids": [3], "block_size": 4, "prefix_reset": true})",
      TraceFormat::kMooncakeDelta);
  REQUIRE(requests.size() == 3);
  CHECK(requests[1].input_tokens == 8);
  CHECK(requests[1].blocks == std::vector<std::uint64_t>{1, 2});
  CHECK(requests[2].input_tokens == 3);
  CHECK(requests[2].blocks == std::vector<std::uint64_t>{3});
}

// 2^24 tokens are allowed: the second row's input is its own, and 16,777,000 in and 400 out before it.
TEST_CASE("a session whose deltas grow beyond a request is refused with its line") {
  const std::string row =
      R"({"session_id": "s", "timestamp": 0, "input_length": 16777000, "output_length": 400})";
  CHECK(trace_refusal(row + "\n" + row, TraceFormat::kMooncakeDelta) ==
        ":2: /input_length: expected at most 16777216 tokens with all that the session had before, found "
        "33554400");
}

TEST_CASE("rows of Dynamo stand in the order in which they end and come in that of their arrival") {
  const auto row = [](int received, const char* hashes) {
    return std::string(
               R"({"schema": "dynamo.request.trace.v1", "event_type": "request_end", "agent_context": {"session_id": "q"}, "request": {"request_id": "r", "request_received_ms": )") +
           std::to_string(received) +
           R"(, "output_tokens": 8, "replay": {"trace_block_size": 64, "input_length": 100, "input_sequence_hashes": )" +
           hashes + "}}}\n";
  };
  const auto requests =
      read(row(2000, "[5]") + R"({"event_type": "tool", "tool": {"x": 1}})" + "\n" + row(1500, "[6]"));
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].blocks == std::vector<std::uint64_t>{6});
  CHECK(requests[0].arrival == 0_s);
  CHECK(requests[1].arrival == 500_ms);
  CHECK(requests[1].block_tokens == 64);
  const auto at_once = read(row(5, "[1]") + row(5, "[2]") + row(5, "[3]"));
  REQUIRE(at_once.size() == 3);
  CHECK(at_once[1].blocks == std::vector<std::uint64_t>{2});
  CHECK(trace_refusal(row(1, "[1, 2, 3]")) ==
        ":1: /request/replay/input_sequence_hashes: expected at most 2 for 100 tokens in "
        "blocks of 64, found 3");
}

TEST_CASE("Azure's rows arrive by their stamps") {
  const auto requests = read(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n2023-11-17 "
      "00:00:00.0000001,396,109");
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].arrival == 0_s);
  // To midnight 5 h 44 min 13.31941 s, and 100 ns.
  CHECK(requests[1].arrival == Time{(5 * 3600 + 44 * 60 + 13) * std::int64_t{1'000'000'000} + 319'410'100});
  CHECK(requests[1].input_tokens == 396);
  CHECK(requests[1].output_tokens == 109);
  const auto later = read(
      "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-02-29 23:59:59.5+00:00,2,1,1\n2024-03-01 "
      "01:00:00+01:00,0,1,1\n");
  CHECK(later[0].images == 2);
  CHECK(later[1].arrival == 500_ms);
}

TEST_CASE("rows of BurstGPT that failed are left out") {
  const auto requests = read(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,,1,ChatGPT,472,18,490,API log\n45,7,1,GPT-4,1087,0,1087,API "
      "log\n45.5,7,1,GPT-4,10,3,13,Conversation log\n");
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].arrival == 40500_ms);
  CHECK(requests[1].session == 0);
  CHECK(requests[0].session == -1);
}

TEST_CASE("a mix of clients comes at the sum of their rates with the lengths of each") {
  const test::Scratch scratch;
  const auto mixed = [&](const std::string& clients) {
    return all_of(*open_trace(
        {scratch.write("mix.json", std::string("{\"requests\": 40000, \"clients\": [") + clients + "]}")}));
  };
  const std::string chat =
      R"({"name": "chat", "rate": 3, "input_tokens": {"100": 1, "200": 3}, "output_tokens": {"mean": 50}})";
  const std::string api =
      R"({"rate": 1, "cv": 3, "input_tokens": {"7": 1}, "output_tokens": {"mean": 10, "sigma": 1}})";
  const auto requests = mixed(chat + ", " + api);
  double short_ones = 0, middle = 0, answered = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i > 0) REQUIRE(requests[i].arrival >= requests[i - 1].arrival);
    if (requests[i].input_tokens == 7) {
      short_ones += 1;
      answered += static_cast<double>(requests[i].output_tokens);
    } else {
      middle += requests[i].input_tokens == 100 ? 1 : 0;
      REQUIRE(requests[i].output_tokens == 50);
    }
  }
  // A quarter of all are of the second client, whose bursts spread the count; of the first a quarter is
  // short.
  CHECK(short_ones / 40000 == Approx(0.25).epsilon(0.08));
  CHECK(middle / (40000 - short_ones) == Approx(0.25).epsilon(0.05));
  CHECK(answered / short_ones == Approx(10).epsilon(0.08));
  CHECK(requests.back().arrival.seconds() == Approx(10000).epsilon(0.05));
  CHECK_THROWS_WITH(
      mixed(R"({"rate": 1, "input_tokens": {"x": 1}, "output_tokens": {"mean": 10}})"),
      Catch::Contains("/clients/0/input_tokens: expected lengths from 1 to 16777216 with a share each"));
}

TEST_CASE("rows of a trace are known by what they hold whatever their file is called") {
  const test::Scratch scratch;
  for (const std::string& rows : {kRow, kRow + "\n" + kRow, "\n" + kRow + "\n"}) {
    const auto requests = all_of(*open_trace({scratch.write("rows.json", rows)}));
    REQUIRE(!requests.empty());
    CHECK(requests.back().input_tokens == 600);
  }
  CHECK_THROWS_WITH(all_of(*open_trace({scratch.write("rows.json", kRow + "\n{")})),
                    Catch::Contains("rows.json:2: "));
  CHECK_THROWS_WITH(open_trace({scratch.write("empty.json", "{}")}), Catch::Contains("\"requests\""));
}

TEST_CASE("arrivals of one stamp spread to the next one") {
  const auto at = [](int ms) {
    return std::string(R"({"timestamp": )") + std::to_string(ms) +
           R"(, "input_length": 1, "output_length": 1})" + "\n";
  };
  const test::Scratch scratch;
  const std::string path = scratch.write("trace", at(0) + at(0) + at(0) + at(3000) + at(4000) + at(4000));
  std::vector<std::int64_t> ms;
  for (const TrafficRequest& request : all_of(*spread_arrivals(open_trace({path}))))
    ms.push_back(request.arrival.ns / 1'000'000);
  CHECK(ms == std::vector<std::int64_t>{0, 1000, 2000, 3000, 4000, 4500});
}

TEST_CASE("bad rows are refused with their line") {
  const std::string good = kRow + "\n";
  CHECK(trace_refusal(good + R"({"timestamp": 1000, "input_length": 1, "output_length": 1})") ==
        ":2: /timestamp: expected at least 1500 as in the row above, found 1000");
  CHECK(trace_refusal(good + R"({"timestamp": 2000, "output_length": 1})") ==
        ":2: expected the key \"input_length\", found none");
  CHECK(trace_refusal(good + R"({"input_length": 1, "output_length": 1})") ==
        ":2: expected the key \"timestamp\" or \"delay\", found neither");
  CHECK(trace_refusal(good + R"({"delay": 5, "input_length": 1, "output_length": 1})") ==
        ":2: expected the key \"session_id\", from whose turn before the pause counts, found none");
  CHECK(trace_refusal(good + R"({"timestamp": 2000, "input_lenght": 1, "output_length": 1})") ==
        ":2: /input_lenght: unknown key \"input_lenght\" (did you mean \"input_length\"?)");
  CHECK(trace_refusal(good + R"({"timestamp": 2000, "input_length": 1.5, "output_length": 1})") ==
        ":2: /input_length: expected a whole number from 1 to 16777216, found 1.5");
  CHECK(trace_refusal(good + R"({"timestamp": 2000, "input_length": "12", "output_length": 1})") ==
        ":2: /input_length: expected a number from 1 to 16777216, found \"12\"");
  CHECK(trace_refusal(good + R"({"timestamp": true, "input_length": 12, "output_length": 1})") ==
        ":2: /timestamp: expected a number from 0 to 1000000000000, found true");
  CHECK(trace_refusal(good + R"({"timestamp": -1, "input_length": 1, "output_length": 1})") ==
        ":2: /timestamp: expected a number from 0 to 1000000000000, found -1");
  CHECK(trace_refusal(
            good + R"({"timestamp": 2000, "input_length": 600, "output_length": 1, "hash_ids": [1]})") == "");
  CHECK(
      trace_refusal(
          good + R"({"timestamp": 2000, "input_length": 600, "output_length": 1, "hash_ids": [1, 2, 3]})") ==
      ":2: /hash_ids: expected 2 ids for 600 tokens in blocks of 512, found 3");
  CHECK(trace_refusal(good +
                      R"({"timestamp": 2000, "input_length": 1, "output_length": 1, "hash_ids": ["a"]})") ==
        ":2: /hash_ids: expected whole numbers of at least 0");
  CHECK(trace_refusal(good + R"({"timestamp": 2000, "timestamp": 2000})") ==
        ":2: /timestamp: the key stands twice");
  CHECK(trace_refusal(good + "[1]") == ":2: expected a JSON object, found another value");
  CHECK(trace_refusal(good + R"({"timestamp": )") ==
        ":2: expected a JSON object, found something else at column 15");
  CHECK(trace_refusal("hello\n") ==
        ":1: expected a JSON object, or the columns of an Azure or BurstGPT trace");
  CHECK(trace_refusal("") == ": the trace holds no requests");
  CHECK(trace_refusal(kRow, TraceFormat::kAzure) ==
        ":1: expected a line that names columns, \"TIMESTAMP\" among them, found "
        R"("{\"timestamp\": 1500, \"input_length...)");
  CHECK(trace_refusal("TIMESTAMPS,ContextTokens\n", TraceFormat::kAzure) ==
        ":1: expected a column \"TIMESTAMP\" (did you mean \"TIMESTAMPS\"?)");
  const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n";
  CHECK(trace_refusal("TIMESTAMP,ContextTokens,GeneratedTokens\n") == ": the trace holds no requests");
  CHECK(trace_refusal(azure + "2023-11-16 18:15:46,374\n") == ":3: expected 3 columns, found 2");
  CHECK(trace_refusal(azure + "2023-11-16 18:15:45,374,44\n") ==
        ":3: TIMESTAMP: expected a time not before that of the row above, found \"2023-11-16 18:15:45\"");
  CHECK(trace_refusal(azure + "2023-02-30 18:15:45,374,44\n") ==
        ":3: TIMESTAMP: expected a time such as 2023-11-16 18:15:46.6805900, found \"2023-02-30 18:15:45\"");
  CHECK(trace_refusal(azure + "2623-02-28 18:15:45,374,44\n") ==
        ":3: TIMESTAMP: expected a time such as 2023-11-16 18:15:46.6805900, found \"2623-02-28 18:15:45\"");
  CHECK(trace_refusal(azure + "2023-11-16 18:15:47,x,44\n") ==
        ":3: ContextTokens: expected a number from 0 to 16777216, found \"x\"");
  CHECK(trace_refusal(azure + "2023-11-16 18:15:47,0,44\n") ==
        ":3: ContextTokens: expected a whole number from 1 to 16777216, found \"0\"");
}

TEST_CASE("a trace that is not there is refused") {
  CHECK_THROWS_WITH(open_trace({"/nowhere/trace.jsonl"}),
                    "/nowhere/trace.jsonl: expected a trace file, found none");
}

TEST_CASE("damaged rows are refused in a sentence and nothing worse") {
  const test::Scratch scratch;
  const std::vector<std::string> seeds{kRow + "\n" + kRow + "\n",
                                       "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 "
                                       "18:15:46.6805900,374,44\n2023-11-16 18:15:46.7,3,4\n"};
  RandomStream random(3);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = seeds[random.below(2)];
    for (std::uint32_t k = 1 + random.below(3); k > 0; --k) {
      const std::size_t at = random.below(static_cast<std::uint32_t>(text.size()));
      if (random.below(3) == 0)
        text.erase(at, 1 + random.below(4));
      else
        text[at] = static_cast<char>(random.below(256));
      if (text.empty()) text.push_back(' ');
    }
    const std::string sentence = trace_refusal(text);
    INFO(sentence);
    REQUIRE(sentence.size() < 300);
    REQUIRE(sentence.find('\n') == std::string::npos);
    if (!sentence.empty()) ++refused;
  }
  CHECK(refused > 1000);
}

TEST_CASE("rows of which none is a request are no trace, and the sentence says which would be") {
  CHECK(trace_refusal(kRow + "\n", TraceFormat::kDynamo) ==
        ": the trace holds no requests: expected rows of dynamo.request.trace.v1, \"event_type\" "
        "\"request_end\"");
  CHECK(trace_refusal("\n\n", TraceFormat::kMooncake) == ": the trace holds no requests");
  CHECK(trace_refusal("Timestamp,Request tokens,Response tokens\n1,5,0\n") ==
        ": the trace holds no requests: expected rows whose \"Response tokens\" are more than 0");
}

TEST_CASE("a mix of clients is drawn by the seed that it is given unless it has one, packed or not") {
  const test::Scratch scratch;
  const auto arrivals = [&](const std::string& seed, std::uint64_t given, bool packed) {
    const std::string client = R"({"rate": 3, "input_tokens": {"7": 1}, "output_tokens": {"mean": 50}})";
    std::string path =
        scratch.write("mix.json", "{\"requests\": 20, " + seed + "\"clients\": [" + client + "]}");
    if (packed) {
      REQUIRE(test::run("gzip -f " + path).exit_code == 0);
      path += ".gz";
    }
    std::vector<std::int64_t> ns;
    for (const TrafficRequest& request : all_of(*open_trace({.path = path, .seed = given})))
      ns.push_back(request.arrival.ns);
    return ns;
  };
  CHECK(arrivals("", 1, false) != arrivals("", 2, false));
  CHECK(arrivals("", 2, true) == arrivals("", 2, false));
  CHECK(arrivals("\"seed\": 5, ", 1, false) == arrivals("\"seed\": 5, ", 2, false));
}

TEST_CASE("turns that go on from an answer are not spread with the rows above them") {
  const test::Scratch scratch;
  const std::string path = scratch.write(
      "trace.jsonl", R"({"timestamp": 0, "input_length": 8, "output_length": 1, "session_id": "a"})"
                     "\n"
                     R"({"timestamp": 100000, "input_length": 8, "output_length": 1, "session_id": "b"})"
                     "\n"
                     R"({"delay": 100, "input_length": 8, "output_length": 1, "session_id": "a"})"
                     "\n");
  const std::unique_ptr<TrafficStream> traffic = spread_arrivals(open_trace({path, TraceFormat::kAuto, 512}));
  std::vector<Time> arrivals;
  for (const TrafficRequest& request : all_of(*traffic)) arrivals.push_back(request.arrival);
  CHECK(arrivals == std::vector<Time>{0_s, 100_s, 100_s});
}

TEST_CASE("a cache whose blocks are of one size takes no requests with others") {
  const test::Scratch scratch;
  const auto row = [](int size) {
    return fmt::format(R"({{"timestamp": 0, "input_length": 32, "output_length": 1, "hash_ids": [1],)"
                       R"( "block_size": {}}})",
                       size) +
           "\n";
  };
  TrafficSource source;
  source.file = TraceFile{.path = scratch.write("t.jsonl", row(32) + row(64))};
  const auto read_all = [&](bool as_told) { all_of(*open_traffic_of_one_block_size(source, as_told)); };
  const std::string found = source.file->path + ": request ";
  CHECK_THROWS_WITH(read_all(false), found + "2 of the trace has blocks of 64 tokens, the first one of 32");
  CHECK_THROWS_WITH(read_all(true), found +
                                        "1 of the trace has blocks of 32 tokens, "
                                        "/workload/trace/block_tokens is 512");
  source.file = TraceFile{.path = scratch.write("t.jsonl", row(32) + row(32)), .block_tokens = 32};
  CHECK(all_of(*open_traffic_of_one_block_size(source, true)).size() == 2);
}

TEST_CASE("a row of thousands of keys is refused at its line") {
  std::string row = "{";
  for (int i = 0; i < 2000; ++i) row += fmt::format("\"k{}\": 1, ", i);
  CHECK_THAT(trace_refusal(row + kRow.substr(1)),
             Catch::Contains("expected at most 1024 keys in a row, found more"));
}

}  // namespace moebius
