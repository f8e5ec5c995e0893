// Reads whatever bytes come as a profile in Chrome's format and, when they pass, makes a run of them.
#include <string_view>

#include "hw/error.h"
#include "tests/fuzz/target.h"
#include "viz/import/chrome_reader.h"
#include "workloads/schedule/timeline.h"

namespace moebius::fuzz {

std::vector<std::string> seed_inputs() {
  return {
      R"({"traceEvents": [{"ph": "X", "name": "gemm L1", "ts": 1.5, "dur": 2, "pid": 1, "tid": "a"},
            {"ph": "C", "name": "c", "ts": 2, "args": {"v": 1}}, {"ph": "M", "name": "thread_name", "pid": 1,
            "tid": "a", "args": {"name": "main"}}], "displayTimeUnit": "ns"})",
      R"([{"ph": "B", "name": "outer", "ts": 0}, {"ph": "B", "name": "inner", "ts": 1}, {"ph": "E", "ts": 2},
            {"ph": "E", "ts": 3}, {"ph": "X", "name": "x", "ts": 1e3, "dur": 1e-3}])"};
}

}  // namespace moebius::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace moebius;
  try {
    viz::ForeignTrace trace = viz::parse_chrome_trace({reinterpret_cast<const char*>(data), size}, "fuzz");
    const std::size_t slices = trace.slices.size();
    for (const auto& [kind, time] : viz::times_of(trace).kinds)
      CHECK(time.waiting >= 0, "seconds of " + std::string(to_string(kind)));
    const Timeline run = viz::timeline_of(std::move(trace), "fuzz");
    CHECK(run.spans.size() == slices, std::to_string(slices));
    for (const Span& span : run.spans) CHECK(Time{} <= span.start && span.start <= span.end, "times");
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput, std::string(error.what()));
  }
  return 0;
}
