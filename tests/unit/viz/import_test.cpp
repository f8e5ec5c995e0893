// Profiles of others as runs.
#include "viz/import/chrome_reader.h"

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"
#include "viz/data/op_names.h"
#include "viz/export/chrome_trace.h"

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

TEST_CASE("counters stand on a row of their process and from before the first slice on") {
  const Timeline run = imported(R"([
    {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "idle"}},
    {"ph": "X", "name": "a", "ts": 10, "dur": 1, "pid": 1}, {"ph": "X", "name": "a", "ts": 11, "dur": 1, "pid": 2},
    {"ph": "C", "name": "memory", "ts": 5, "pid": 2, "args": {"value": 7}},
    {"ph": "C", "name": "memory", "ts": 12, "pid": 1, "args": {"value": 8}},
    {"ph": "C", "name": "memory", "ts": 12, "pid": 3, "args": {"value": 9}}])");
  REQUIRE(run.samples.size() == 3);
  CHECK(run.samples[0].time == 0_ns);
  CHECK(run.samples[0].rank_class == 1);
  CHECK(run.samples[1].rank_class == 0);
  CHECK(run.samples[1].time == 7_us);
  CHECK(class_name(run, run.samples[2].rank_class) == "idle");
  CHECK(run.spans[0].start == 5_us);
}

// Of PyTorch's step of 600 us a product takes 50 us, a launch 8 and a synchronise 400 of the host's time:
// nothing of it is compute. The kernel's 30 us are, and of a thread's calls inside calls each counts once.
TEST_CASE("a moment of a thread counts once, and as an op only where a name says so") {
  ForeignTrace trace = parse_chrome_trace(R"([
    {"ph": "X", "name": "ProfilerStep#5", "cat": "user_annotation", "ts": 0, "dur": 600, "pid": 1, "tid": 1},
    {"ph": "X", "name": "aten::matmul", "cat": "cpu_op", "ts": 10, "dur": 50, "pid": 1, "tid": 1},
    {"ph": "X", "name": "cudaLaunchKernel", "cat": "cuda_runtime", "ts": 20, "dur": 8, "pid": 1, "tid": 1},
    {"ph": "X", "name": "cudaDeviceSynchronize", "ts": 100, "dur": 400, "pid": 1, "tid": 1},
    {"ph": "X", "name": "xmma_gemm", "cat": "kernel", "ts": 40, "dur": 30, "pid": 2, "tid": 7}])",
                                          "t");
  const ForeignTimes times = times_of(trace);
  REQUIRE(times.kinds.size() == 1);
  CHECK(times.kinds.at(OpKind::kGemm).busy == Approx(30e-6));
  CHECK(times.other == Approx(600e-6));
}

// Two lanes of a class: of the receive's 3 us it waits for 2.
TEST_CASE("an export of ours comes back with its names, its lanes and what of a slice is waiting") {
  const std::string json = R"json({"otherData": {"timeline_detail": "ops"}, "traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 4, "tid": 0, "args": {"name": "ranks like 4 (x8)"}},
    {"ph": "M", "name": "thread_name", "pid": 4, "tid": 0, "args": {"name": "compute"}},
    {"ph": "M", "name": "thread_name", "pid": 4, "tid": 4, "args": {"name": "recv_forward"}},
    {"ph": "X", "name": "gemm down L1", "ts": 0, "dur": 2, "pid": 4, "tid": 0},
    {"ph": "X", "name": "recv pipeline", "args": {"waiting_us": 2}, "ts": 0, "dur": 3, "pid": 4, "tid": 4}]})json";
  ForeignTrace trace = parse_chrome_trace(json, "t");
  const ForeignTimes times = times_of(trace);
  CHECK(times.kinds.at(OpKind::kRecv).busy == Approx(1e-6));
  CHECK(times.kinds.at(OpKind::kRecv).waiting == Approx(2e-6));
  const Timeline run = timeline_of(std::move(trace), "t");
  REQUIRE(run.class_ranks.size() == 1);
  CHECK(class_name(run, 0) == "ranks like 4 (x8)");
  CHECK(given_class_name(run, 0) == "ranks like 4 (x8)");
  CHECK(run.spans[0].lane == Lane::kRecvForward);  // the longer of two that begin together
  CHECK(run.spans[0].transfer_start() == 2_us);
}

// Iterations and requests are no ops, whatever their names hold.
TEST_CASE("an export of a service comes back as what it kept") {
  ForeignTrace trace = parse_chrome_trace(R"({"otherData": {"timeline_detail": "steps"}, "traceEvents": [
    {"ph": "X", "name": "decode attention", "ts": 0, "dur": 2, "pid": 4, "tid": 0}]})",
                                          "t");
  const ForeignTimes times = times_of(trace);
  CHECK(times.kinds.empty());
  CHECK(times.other == Approx(2e-6));
  const Timeline run = timeline_of(std::move(trace), "t");
  CHECK(of_submissions(run));
  CHECK(span_name(run, run.ops[0]) == "decode attention");
}

// Of two threads that are called alike each has its own calls inside calls.
TEST_CASE("an export of an import says what the profile said") {
  const test::Scratch scratch;
  const std::string profile = scratch.write("t.json", R"({"traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "python"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::matmul", "ts": 0, "dur": 100, "pid": 3, "tid": 1},
    {"ph": "X", "cat": "kernel", "name": "ampere_gemm", "ts": 10, "dur": 50, "pid": 1, "tid": 7},
    {"ph": "X", "cat": "kernel", "name": "flash_fwd", "ts": 20, "dur": 10, "pid": 1, "tid": 7},
    {"ph": "X", "cat": "kernel", "name": "ampere_gemm", "ts": 10, "dur": 40, "pid": 2, "tid": 7},
    {"ph": "X", "cat": "kernel", "name": "flash_fwd", "ts": 45, "dur": 5, "pid": 2, "tid": 7}]})");
  const std::string run = scratch.path("t.mtl"), exported = scratch.path("e.json");
  save_timeline(timeline_of(read_chrome_trace(profile), "t.json"), run);
  export_chrome(SpanColumns(run), exported);
  ForeignTrace again = read_chrome_trace(exported);
  const ForeignTimes times = times_of(again);
  CHECK(times.kinds.at(OpKind::kGemm).busy == Approx(75e-6));  // 50 - 10 and 40 - 5
  CHECK(times.kinds.at(OpKind::kAttention).busy == Approx(15e-6));
  CHECK(times.other == Approx(100e-6));
  const Timeline rows = timeline_of(std::move(again), "e.json");
  REQUIRE(rows.class_ranks.size() == 5);
  CHECK(class_name(rows, 1) == "python, thread 7");
}

TEST_CASE("names that stand at time 0 take no nanoseconds from times since 1970") {
  const Timeline run = imported(R"([
    {"ph": "M", "name": "process_name", "ts": 0, "pid": 1, "args": {"name": "trainer"}},
    {"ph": "X", "name": "a", "ts": 1764364800000000.000, "dur": 0.01, "pid": 1, "tid": 7},
    {"ts": 1764364800000000.020, "ph": "X", "name": "b", "dur": 0.01, "pid": 1, "tid": 7}])");
  REQUIRE(run.spans.size() == 2);
  CHECK(run.class_ranks.size() == 1);
  CHECK(run.spans[1].start == 20_ns);
}

TEST_CASE("times since 1970 keep their nanoseconds") {
  const Timeline run = imported(R"([
    {"ph": "X", "name": "a", "ts": 1713375839042873.123, "dur": 10.4, "pid": 1, "tid": 7},
    {"ph": "X", "name": "b", "ts": 1713375839042883.523, "dur": 10.4, "pid": 1, "tid": 7},
    {"ph": "X", "name": "c", "ts": 1713375839042893.923, "dur": 10.4, "pid": 1, "tid": 7}])");
  REQUIRE(run.spans.size() == 3);
  CHECK(run.class_ranks.size() == 1);
  CHECK(run.spans[1].start == 10'400_ns);
  CHECK(run.spans[2].start == 20'800_ns);
}

TEST_CASE("parts of attention that are combined, and sums that are spread out, are no communication") {
  CHECK(guess_op("flash::flash_fwd_splitkv_combine_kernel").kind == OpKind::kAttention);
  CHECK_FALSE(guess_op("loop_broadcast_fusion").known);
  CHECK(guess_op("ncclDevKernel_Broadcast_RING_LL").kind == OpKind::kBroadcast);
  CHECK(guess_op("deep_ep::internode::combine<true>").kind == OpKind::kCombine);
}

TEST_CASE("slices that together are longer than any time are told in seconds") {
  const test::Scratch scratch;
  std::string events;
  for (int i = 0; i < 10; ++i)
    events += std::string(i > 0 ? "," : "") +
              R"({"ph": "X", "name": "x", "ts": 0, "dur": 1.9e15, "pid": 1, "tid": )" + std::to_string(i) +
              "}";
  const test::Finished done = test::run_moebius("import " + scratch.write("t.json", "[" + events + "]") +
                                                " --out " + scratch.path("run"));
  INFO(done.err);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.err, Catch::Contains("1.9e+10 s"));
}

TEST_CASE("a profile that is not there is told by what is wrong with it") {
  CHECK_THROWS_WITH(read_chrome_trace("/nowhere.json"),
                    "/nowhere.json: cannot be read: No such file or directory");
}

TEST_CASE("a directory is no profile") {
  const test::Scratch scratch;
  const std::string arguments = "import --chrome " + scratch.path(".") + " --out " + scratch.path("run");
  const test::Finished refused = test::run_moebius(arguments);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Catch::Contains("import: expected a profile, found the directory "));
}

TEST_CASE("a profile whose file's name is no UTF-8 is a run that can be read") {
  const test::Scratch scratch;
  const std::string profile =
      scratch.write("t\xff.json", R"([{"ph": "X", "name": "a", "ts": 0, "dur": 1, "pid": 1, "tid": 1}])");
  const std::string run = scratch.path("run");
  REQUIRE(test::run_moebius("import --chrome " + profile + " --out " + run).exit_code == 0);
  const test::Finished page = test::run_moebius("report " + run + " --html " + scratch.path("page.html"));
  INFO(page.err);
  CHECK(page.exit_code == 0);
}

}  // namespace
}  // namespace moebius::viz
