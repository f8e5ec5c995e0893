#include "workloads/serving/system/instance.h"

#include <algorithm>

namespace moebius {

std::int64_t load_of(const ReplicaLoad& load, ReplicaBalance by) {
  if (by == ReplicaBalance::kTokens) return load.prompt_tokens + load.context_tokens;
  return load.waiting + load.running;
}

Instance::Instance(const InstanceRules& rules, StepCost& cost)
    : rules_(rules),
      cost_(cost),
      replicas_(rules.replicas, Replica(rules.replica)),
      shapes_(rules.replicas) {}

int Instance::choose() {
  const int turn = turn_;
  turn_ = (turn_ + 1) % size();
  if (rules_.balance == ReplicaBalance::kRoundRobin) return turn;
  int best = turn;  // of equals, the one whose turn it is
  for (int i = 1; i < size(); ++i) {
    const int at = (turn + i) % size();
    if (load_of(replicas_[at].load(), rules_.balance) < load_of(replicas_[best].load(), rules_.balance))
      best = at;
  }
  return best;
}

std::optional<Time> Instance::begin(Time now) {
  if (busy_) return std::nullopt;
  std::int64_t rows = 0, most = 0, prompts = 0;
  for (int i = 0; i < size(); ++i) {
    shapes_[i] = replicas_[i].plan();
    rows += shapes_[i].rows();
    prompts += shapes_[i].prefill_tokens;
    most = std::max(most, shapes_[i].rows());
  }
  if (rows == 0) return std::nullopt;
  const Time lasts = duration();
  ++totals_.iterations;
  totals_.prefills += prompts > 0;
  totals_.busy += lasts;
  totals_.busy_with_prompts +=
      prompts == rows ? lasts
                      : Time{static_cast<std::int64_t>(static_cast<double>(lasts.ns) * prompts / rows)};
  totals_.rows += static_cast<double>(rows);
  totals_.slowest_rows += static_cast<double>(most) * size();
  busy_ = true;
  until_ = now + lasts;
  return until_;
}

Time Instance::duration() {
  const Time device = time_from_seconds(cost_.seconds(shapes_));
  std::int64_t sequences = 0;
  for (const StepShape& shape : shapes_)
    sequences = std::max<std::int64_t>(sequences, shape.prefill_sequences + shape.decode_sequences);
  const Time host = rules_.host.per_iteration + rules_.host.per_sequence * sequences;
  return rules_.host.overlapped ? std::max(device, host) : device + host;
}

void Instance::end(Time now, StepOutcome& outcome) {
  for (Replica& replica : replicas_) replica.complete(now, outcome);
  busy_ = false;
}

std::int64_t Instance::load(ReplicaBalance by) const {
  std::int64_t sum = 0;
  for (const Replica& replica : replicas_) sum += load_of(replica.load(), by);
  return sum;
}

}  // namespace moebius
