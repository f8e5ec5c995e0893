#include "workloads/schedule/metrics.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

namespace {

double seconds(std::int64_t ns) {
  return Time{ns}.seconds();
}

// Kinds that no reverse pass has but to compute activations again.
bool runs_forward_only(OpKind kind) {
  constexpr std::array kKinds{OpKind::kGemm,      OpKind::kGroupedGemm, OpKind::kNorm, OpKind::kRotary,
                              OpKind::kAttention, OpKind::kActivation,  OpKind::kGate, OpKind::kPermute,
                              OpKind::kUnpermute, OpKind::kMlaKeys};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

void add_scaled(Breakdown& sum, const Breakdown& part, double factor) {
  for (int kind = 0; kind < kNumOpKinds; ++kind) {
    sum.compute[kind] += factor * part.compute[kind];
    sum.communication[kind] += factor * part.communication[kind];
    sum.exposed[kind] += factor * part.exposed[kind];
    sum.waiting[kind] += factor * part.waiting[kind];
  }
  for (int phase = 0; phase < kNumPhases; ++phase) {
    sum.compute_by_phase[phase] += factor * part.compute_by_phase[phase];
    sum.exposed_by_phase[phase] += factor * part.exposed_by_phase[phase];
  }
  for (int group = 0; group < kNumGroupRoles; ++group) {
    sum.communication_by_group[group] += factor * part.communication_by_group[group];
    sum.exposed_by_group[group] += factor * part.exposed_by_group[group];
  }
  sum.recompute += factor * part.recompute;
  sum.optimizer += factor * part.optimizer;
  sum.idle += factor * part.idle;
}

void add_exposure(Breakdown& sums, const Exposure& exposure, Time end) {
  std::int64_t exposed = 0;
  for (int kind = 0; kind < kNumOpKinds; ++kind) {
    sums.exposed[kind] = seconds(exposure.transfer()[kind]);
    sums.waiting[kind] = seconds(exposure.waiting()[kind]);
    exposed += exposure.transfer()[kind];
  }
  for (int phase = 0; phase < kNumPhases; ++phase)
    sums.exposed_by_phase[phase] = seconds(exposure.transfer_of_phase(static_cast<Phase>(phase)));
  for (int group = 0; group < kNumGroupRoles; ++group)
    sums.exposed_by_group[group] = seconds(exposure.transfer_of_group(static_cast<GroupRole>(group)));
  sums.optimizer = sums.compute_by_phase[static_cast<int>(Phase::kOptimizer)] +
                   seconds(exposure.transfer_of_phase(Phase::kOptimizer));
  sums.idle = seconds(end.ns - exposure.computed() - exposed);
}

}  // namespace

void BusySources::add(const BusySources& other, double times) {
  for (int origin = 0; origin < kNumOrigins; ++origin) seconds[origin] += times * other.seconds[origin];
  error += times * other.error;
  joules += times * other.joules;
}

double BusySources::busy() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double Metrics::joules() const {
  return std::accumulate(joules_by_class.begin(), joules_by_class.end(), 0.0);
}

// Weight gradients that come later than those of inputs compute again what only they need.
CountedOp counted(const Op& op, const ClassWork& work) {
  const bool reverses = op.phase == Phase::kBackward || op.phase == Phase::kWeight;
  return {.work = work,
          .kind = op.kind,
          .phase = op.phase,
          .group = op.group,
          .computes = !is_communication(op.kind) && op.lane != Lane::kLoader,
          .recomputes = reverses && runs_forward_only(op.kind)};
}

MetricsAccumulator::MetricsAccumulator(std::vector<std::int32_t> class_sizes)
    : sizes_(std::move(class_sizes)), classes_(sizes_.size()) {
  metrics_.joules_by_class.resize(sizes_.size());
}

// When the average member computes. A class shows its slowest member; an op that follows the one before it in
// its lane at once was started earlier by the average member, which had ended that one earlier. After a
// pause, which is a meeting with others, all start together. What the average member gains until then shows
// as waiting in that meeting.
Interval MetricsAccumulator::average_member(const Span& span, ClassState& state) {
  ClassState::LaneState& lane = state.lanes[static_cast<int>(span.lane)];
  const Time start = span.start == lane.end ? span.start - lane.lag : span.start;
  const Time end = start + (span.average_end() - span.start);
  lane = {span.end, span.end - end};
  return {start.ns, end.ns};
}

// When the average member is there: on the lane that computes, an op that follows another at once begins when
// the slowest has ended that one.
Time MetricsAccumulator::average_arrival(const Span& span, ClassState& state) {
  ClassState::LaneState& lane = state.lanes[static_cast<int>(span.lane)];
  const Time arrival = span.start == lane.end ? span.start - lane.lag : span.start;
  lane = {span.end, {}};
  return arrival;
}

void MetricsAccumulator::add_busy(const Span& span, std::int32_t members, double seconds) {
  metrics_.seconds_by_origin[static_cast<int>(span.origin)] += members * seconds;
  error_seconds_ += members * seconds * static_cast<double>(span.error);
}

void MetricsAccumulator::add(const Span& span, const CountedOp& op) {
  CHECK(span.rank_class >= 0 && span.rank_class < static_cast<std::int32_t>(classes_.size()),
        fmt::format("class {} of {}", span.rank_class, classes_.size()));
  CHECK(span.start <= span.end, fmt::format("span of {} ns .. {} ns", span.start.ns, span.end.ns));
  ClassState& state = classes_[span.rank_class];
  const int kind = static_cast<int>(op.kind);
  double busy = 0;
  if (!op.computes) {
    const Time end = span.average_end(), transfer = std::min(span.transfer_start(), end);
    busy = (end - transfer).seconds();
    state.sums.communication[kind] += busy;
    state.sums.communication_by_group[static_cast<int>(op.group)] += busy;
    state.exposure.communicate({.waiting = {average_arrival(span, state).ns, transfer.ns},
                                .transfer = {transfer.ns, end.ns},
                                .kind = op.kind,
                                .phase = op.phase,
                                .group = op.group});
  } else {
    const Interval interval = average_member(span, state);
    busy = seconds(interval.end - interval.start);
    state.sums.compute[kind] += busy;
    state.sums.compute_by_phase[static_cast<int>(op.phase)] += busy;
    if (op.recomputes) state.sums.recompute += busy;
    state.errors[static_cast<int>(span.origin)][kind] += busy * static_cast<double>(span.error);
    state.exposure.compute(interval);
  }
  add_busy(span, sizes_[span.rank_class], busy);
  metrics_.flops += op.work.flops;
  metrics_.flops_by_kind[kind] += op.work.flops;
  metrics_.sent_bytes += op.work.sent;
  ++metrics_.spans;
}

Metrics MetricsAccumulator::finish(Time end) {
  metrics_.makespan = end;
  double ranks = 0;
  for (const std::int32_t size : sizes_) ranks += size;
  metrics_.by_class.reserve(classes_.size());
  const bool computed = std::any_of(classes_.begin(), classes_.end(),
                                    [](const ClassState& state) { return state.exposure.computed() > 0; });
  if (computed) metrics_.errors_by_class.reserve(classes_.size());  // messages alone have no such errors
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    ClassState& state = classes_[i];
    state.exposure.finish(end.ns);
    add_exposure(state.sums, state.exposure, end);
    add_scaled(metrics_.breakdown, state.sums, sizes_[i] / ranks);
    metrics_.by_class.push_back(state.sums);
    if (computed) metrics_.errors_by_class.push_back(state.errors);
  }
  double busy = 0;
  for (const double seconds : metrics_.seconds_by_origin) busy += seconds;
  metrics_.mean_error = busy > 0 ? error_seconds_ / busy : 0;
  return std::move(metrics_);
}

}  // namespace moebius
