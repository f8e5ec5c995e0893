// What a serving system tells who looks on.
#include "workloads/serving/system/serving_state.h"

namespace moebius {

void ServingSystem::State::tell_iteration(const Location& at, Time begin, Time end) {
  std::int64_t rows = 0, prompts = 0, decodes = 0;
  for (const StepShape& shape : instance(at).shapes()) {
    rows += shape.rows();
    prompts += shape.prefill_tokens;
    decodes += shape.decode_tokens;
  }
  rules.observer->iteration(pools[at.pool].first + at.instance, begin, end, prompts > 0, decodes > 0, rows);
}

void ServingSystem::State::tell_moments(Time until) {
  if (rules.observer == nullptr || until < rules.observer->due()) return;
  moments.assign(pools.size(), {});
  for (std::size_t p = 0; p < pools.size(); ++p) {
    PoolMoment& of = moments[p];
    of.balancedness = 0;
    for (const Instance& instance : pools[p].instances) {
      of.balancedness += instance.balancedness() / static_cast<double>(pools[p].instances.size());
      for (int i = 0; i < instance.size(); ++i) {
        const ReplicaLoad load = instance.replica(i).load();
        of.waiting += load.waiting;
        of.running += load.running;
        of.pages += load.pages;
      }
    }
  }
  rules.observer->sample(until, moments);
}

}  // namespace moebius
