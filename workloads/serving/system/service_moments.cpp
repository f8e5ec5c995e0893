// What a serving system tells who looks on.
#include "workloads/serving/system/serving_state.h"

namespace moebius {

void ServingSystem::State::tell_iteration(const Location& at, Time begin, Time end) {
  const StepSums& sums = instance(at).sums();
  rules.observer->iteration(pools[at.pool].first + at.instance, begin, end, sums.prompts > 0,
                            sums.decodes > 0, sums.rows);
}

void ServingSystem::State::tell_moments(Time until) {
  if (rules.observer == nullptr || until < rules.observer->due()) return;
  moments.assign(pools.size(), {});
  for (std::size_t p = 0; p < pools.size(); ++p) {
    PoolMoment& of = moments[p];
    of.balancedness = 0;
    const std::vector<Instance>& instances = pools[p].instances;
    double share = 0;  // one is asked for all that have its costs
    for (std::size_t i = 0; i < instances.size(); ++i) {
      if (i == 0 || !rules.pools[p].costs.empty())
        share = instances[i].balancedness() / static_cast<double>(instances.size());
      of.balancedness += share;
    }
    pools[p].loads->refresh();
    of.waiting = pools[p].loads->sum().waiting;
    of.running = pools[p].loads->sum().running;
    of.pages = pools[p].loads->sum().pages;
  }
  rules.observer->sample(until, moments);
}

}  // namespace moebius
