#include "workloads/serving/separation/side_times.h"

#include <algorithm>

#include "workloads/serving/separation/separated_layout.h"

namespace moebius {
namespace {

// Of one class. Ops of a lane do not overlap; exchanges are the same on both sides.
void add_span(const Span& span, const Op& op, bool experts, SideTimes& times) {
  if (!is_communication(op.kind)) {
    (experts ? times.experts : times.attention) += (span.end - span.start).seconds();
  } else if (!experts) {
    (op.kind == OpKind::kDispatch ? times.to_experts : times.back) +=
        (span.end - span.transfer_start()).seconds();
  }
}

}  // namespace

SideTimes& SideTimes::operator+=(const SideTimes& other) {
  iteration += other.iteration;
  attention += other.attention;
  experts += other.experts;
  to_experts += other.to_experts;
  back += other.back;
  microbatches += other.microbatches;
  return *this;
}

SideTimes SideTimes::operator*(double factor) const {
  return {iteration * factor,  attention * factor, experts * factor,
          to_experts * factor, back * factor,      microbatches * factor};
}

// Unfolded, each side shows its busiest rank.
SideTimes take_side_times(Timeline& timeline, const ServingPlan& plan, const Layout& layout,
                          const std::vector<FragmentPtr>& fragments, std::int32_t first_sequence) {
  std::vector<SideTimes> of_class(fragments.size());
  Time begin = kForever, end;
  for (const Span& span : timeline.spans) {
    if (span.sequence < first_sequence) continue;
    const std::int32_t c = span.sequence - first_sequence;
    add_span(span, fragments[c]->ops[span.op], holds_experts(plan, layout.classes[c]), of_class[c]);
    begin = std::min(begin, span.start);
    end = std::max(end, span.end);
  }
  timeline.spans.clear();
  SideTimes times;
  times.iteration = begin < end ? (end - begin).seconds() : 0;
  for (const SideTimes& of : of_class) {
    times.attention = std::max(times.attention, of.attention);
    times.experts = std::max(times.experts, of.experts);
    times.to_experts = std::max(times.to_experts, of.to_experts);
    times.back = std::max(times.back, of.back);
  }
  return times;
}

}  // namespace moebius
