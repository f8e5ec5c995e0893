// Opens whatever bytes come as a timeline and, when they pass, reads all that it gives out: damaged files are
// an input error, never more.
#include <array>
#include <span>

#include "hw/error.h"
#include "tests/fuzz/target.h"
#include "tests/unit/workloads/small_timeline.h"
#include "workloads/schedule/compare.h"
#include "workloads/schedule/timeline.h"

namespace moebius::fuzz {

namespace {

// Follows every index, and sums up so that nothing is left out.
double read_all(const MappedTimeline& timeline) {
  double sum = 0;
  for (std::size_t i = 0; i < timeline.num_spans(); ++i) {
    const Span span = timeline.span(i);
    sum +=
        (span.end - span.start).seconds() + timeline.op_of(span).payload + timeline.submission_of(span).step;
    sum += timeline.tables().class_sizes[span.rank_class];
    CHECK(timeline.op_of(span).index == span.op, std::to_string(i));
    CHECK(span.transfer_start() >= span.start && span.transfer_start() <= span.end, std::to_string(i));
  }
  for (const CounterSample& sample : timeline.tables().samples) {
    sum += sample.value + static_cast<double>(timeline.tables().counters[sample.counter].size());
  }
  return sum;
}

}  // namespace

std::vector<std::string> seed_inputs() {
  Timeline counters = small_timeline();
  counters.spans.clear();
  Timeline long_run = small_timeline();
  for (std::int32_t i = 3; i < 40; ++i) {
    long_run.submissions.push_back({i, i % 2, i % 2, i / 8, i % 8});
    long_run.spans.push_back({.sequence = i, .rank_class = i % 2, .start = {50 + i}, .end = {51 + i}});
  }
  return {saved({}), saved(small_timeline()), saved(counters), saved(long_run)};
}

}  // namespace moebius::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace moebius;
  try {
    const MappedTimeline timeline(std::as_bytes(std::span(data, size)), "fuzz");
    CHECK(fuzz::read_all(timeline) != -1, "a sum");
    const Comparison same = compare(timeline, timeline);
    CHECK(same.only_a == 0 && same.only_b == 0 && same.different_ops == 0, to_text(same, "a", "b"));
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput, std::string(error.what()));
  }
  return 0;
}
