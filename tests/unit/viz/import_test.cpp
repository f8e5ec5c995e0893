// Profiles of others as runs.
#include "viz/import/chrome_reader.h"

#include "hw/error.h"
#include "tests/process.h"
#include "viz/data/op_names.h"
#include "tests/catch.h"

namespace moebius::viz {
namespace {

using namespace literals;

Timeline imported(const std::string& json) {
  const test::Scratch scratch;
  return timeline_of(read_chrome_trace(scratch.write("t.json", json)), "t.json");
}

std::string refusal(const std::string& json) {
  const test::Scratch scratch;
  const std::string path = scratch.write("t.json", json);
  try {
    read_chrome_trace(path);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return std::string(error.what()).substr(path.size() + 2);
  }
  return "";
}

TEST_CASE("slices become spans in the order of time that starts with the first") {
  const Timeline run = imported(R"({"traceEvents": [
    {"ph": "X", "name": "b", "ts": 1002.5, "dur": 1.001, "pid": 1, "tid": 7},
    {"ph": "X", "name": "a", "ts": 1000, "dur": 2, "pid": 1, "tid": 7, "args": {"ts": 5, "deep": [{"ts": 9}]}}]})");
  REQUIRE(run.spans.size() == 2);
  CHECK(run.fragments[run.submissions[0].fragment] == "a");
  CHECK(run.spans[0].start == 0_ns);
  CHECK(run.spans[0].end == 2_us);
  CHECK(run.spans[1].start == 2500_ns);
  CHECK(run.spans[1].end == 3501_ns);
  CHECK(run.class_ranks.size() == 1);
}

TEST_CASE("a bare array of events is a profile too and pairs of events are slices") {
  const Timeline run = imported(R"([
    {"ph": "B", "name": "outer", "ts": 0, "pid": "GPU 0", "tid": "stream 7"},
    {"ph": "B", "name": "inner", "ts": 1, "pid": "GPU 0", "tid": "stream 7"},
    {"ph": "E", "ts": 3, "pid": "GPU 0", "tid": "stream 7"},
    {"ph": "E", "ts": 9, "pid": "GPU 0", "tid": "stream 7"}])");
  REQUIRE(run.spans.size() == 2);
  CHECK(run.spans[0].end == 9_us);
  CHECK(run.spans[1].start == 1_us);
  CHECK(run.spans[1].end == 3_us);
}

TEST_CASE("calls inside calls stand on rows below each other") {
  const Timeline run = imported(R"([
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}},
    {"ph": "X", "name": "outer", "ts": 0, "dur": 10, "pid": 1, "tid": 2},
    {"ph": "X", "name": "inner", "ts": 0, "dur": 4, "pid": 1, "tid": 2},
    {"ph": "X", "name": "later", "ts": 10, "dur": 1, "pid": 1, "tid": 2}])");
  REQUIRE(run.class_ranks.size() == 2);
  CHECK(run.spans[0].rank_class == 0);
  CHECK(run.spans[1].rank_class == 1);
  CHECK(run.spans[2].rank_class == 0);
  CHECK(class_name(run, 0) == "python, main");
  CHECK(class_name(run, 1) == "python, main, below 1");
}

TEST_CASE("counters are samples and other events are counted") {
  const test::Scratch scratch;
  ForeignTrace trace = read_chrome_trace(scratch.write("t.json", R"([
    {"ph": "X", "name": "a", "ts": 10, "dur": 1},
    {"ph": "C", "name": "memory", "ts": 12, "args": {"used": 3, "free": 5}},
    {"ph": "i", "name": "mark", "ts": 11}, {"ph": "E", "ts": 11}])"));
  CHECK(trace.left_out == 2);
  const Timeline run = timeline_of(std::move(trace), "t");
  CHECK(run.counters == std::vector<std::string>{"memory used", "memory free"});
  REQUIRE(run.samples.size() == 2);
  CHECK(run.samples[1].time == 2_us);
  CHECK(run.samples[1].value == 5);
}

TEST_CASE("names tell what an op is") {
  const auto kind = [](const char* name) { return guess_op(name).kind; };
  CHECK(kind("gemm q_b L3") == OpKind::kGemm);
  CHECK(guess_op("gemm q_b L3").layer == 3);
  CHECK(kind("grouped_gemm_wgrad experts L60") == OpKind::kGroupedGemmWgrad);
  CHECK(kind("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n") == OpKind::kGemm);
  CHECK(kind("void flash_fwd_kernel<Traits>") == OpKind::kAttention);
  CHECK(guess_op("flash_bwd_dq_dk_dv_loop").phase == Phase::kBackward);
  CHECK(kind("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL") == OpKind::kReduceScatter);
  CHECK(kind("Memcpy HtoD (Pinned -> Device)") == OpKind::kCopyFromHost);
  CHECK(kind("something else") == OpKind::kAdd);
}

TEST_CASE("an imported run is a file like any other") {
  const test::Scratch scratch;
  const Timeline run = imported(R"([{"ph": "X", "name": "a", "ts": 0, "dur": 1, "pid": 1, "tid": 1},
                                    {"ph": "X", "name": "b", "ts": 2, "dur": 0, "pid": 2, "tid": 1}])");
  save_timeline(run, scratch.path("t.mtl"));
  const MappedTimeline read(scratch.path("t.mtl"));
  CHECK(read.num_spans() == 2);
  CHECK(read.fact("executor") == "imported");
}

TEST_CASE("what is no profile is refused with the place where it is wrong") {
  CHECK(refusal(R"({"a": 1})") == R"(expected "traceEvents" or an array of events, found neither)");
  CHECK(refusal("[]") == "expected slices, found none");
  CHECK(refusal(R"([{"ph": "X", "name": "a", "ts": 1)") ==
        "byte 33: expected more JSON, found the end of the file");
  CHECK(refusal(R"([{"ph": "X",])") == R"(byte 13: expected JSON, found "\"X\",]")");
  CHECK(refusal(R"([{"ph": "X", "name": "a"}])") == R"(event 1: expected microseconds in "ts", found none)");
  CHECK(refusal(R"([{"ph": "X", "name": "a", "ts": 1e200}])") ==
        R"(event 1: expected microseconds in "ts", found none that can be)");
  CHECK(refusal(R"([{"ph": "X", "name": "a", "ts": 1, "dur": -1}])") ==
        "event 1: expected a duration of at least 0, found less");
  CHECK(refusal(R"([{"ph": "B", "ts": 5, "name": "a"}, {"ph": "E", "ts": 4}])") ==
        "event 2: expected an end after its begin, found one before");
  CHECK(refusal(std::string(100, '[')) == "expected at most 64 levels, found more");
}

}  // namespace
}  // namespace moebius::viz
