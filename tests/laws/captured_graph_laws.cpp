// What decoding takes on either side of the sizes that graphs were captured for.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tests/laws/timed_iterations.h"

#include "tests/catch.h"

namespace moebius {
namespace {

constexpr std::string_view kDense = R"({"attention": {"dp": 1, "tp": 1}, "max_batch": 512})";
constexpr std::string_view kShared = R"({"attention": {"dp": 8, "tp": 1}, "ep": {"degree": 8}})";

Scenario scenario_of(const Library& library, std::string_view scheduler, std::string_view model = "qwen3-8b",
                     std::string_view decode = kDense) {
  const std::string text = fmt::format(
      R"({{"moebius": 1, "kind": "serving", "name": "graphs", "seed": 1, "model": "{}",
        "cluster": {{"pools": [{{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}}],
                    "fabric": {{"type": "rail-optimised-clos", "nic": "400 Gb/s"}}}},
        "plan": {{"framework": "vllm", "decode": {}, "scheduler": {}}},
        "workload": {{"trace": {{"generator": "conversation", "requests": 30, "rate": 20}}}}}})",
      model, decode, scheduler);
  return read_scenario(parse_document(text, "graphs"), library.hardware, library.models);
}

StepPoint decoding(std::int64_t sequences, double others = 1) {
  return {.decode_sequences = sequences, .decode_keys = 1024, .others = others};
}

StepPoint eager(StepPoint point) {
  point.eager = true;
  return point;
}

}  // namespace

TEST_CASE("decoding that no graph was captured for takes what it takes launched kernel by kernel") {
  const Library library("");
  TimedIterations few(scenario_of(library, R"({"captured_most": 64})"));
  TimedIterations all(scenario_of(library, R"({"captured_most": 0})"));
  TimedIterations none(scenario_of(library, R"({"launch": "kernel"})"));
  for (const std::int64_t sequences : {64, 65, 80, 100}) {
    INFO(sequences);
    const double replayed = few.seconds(decoding(sequences));
    const double launched = few.seconds(eager(decoding(sequences)));
    CHECK(replayed == all.seconds(decoding(sequences)));
    CHECK(launched == none.seconds(decoding(sequences)));
    CHECK(launched > 1.5 * replayed);
  }
}

// 65 is interpolated between 64 and 96: were its lower edge replayed, it would take hardly more than 64 does.
TEST_CASE("the first size beyond the graphs takes all of its launches") {
  const Library library("");
  TimedIterations timed(scenario_of(library, R"({"captured_most": 64})"));
  const double last = timed.seconds(decoding(64)), first = timed.seconds(eager(decoding(65)));
  const double next = timed.seconds(eager(decoding(96)));
  CHECK(first - last > 0.9 * (next - last));
}

// Beside replicas with half as many rows, which go through the same exchanges.
TEST_CASE("all ranks that share experts launch kernels one by one where the fullest has no graph") {
  const Library library("");
  TimedIterations graphs(scenario_of(library, R"({"captured_most": 16})", "qwen3-30b-a3b", kShared));
  TimedIterations none(scenario_of(library, R"({"launch": "kernel"})", "qwen3-30b-a3b", kShared));
  CHECK(graphs.seconds(eager(decoding(32, 0.5))) == none.seconds(decoding(32, 0.5)));
  CHECK(graphs.seconds(eager(decoding(32, 0.5))) > graphs.seconds(decoding(32)));
}

}  // namespace moebius
