// What no plan of a service can be better than, from what its pools can do at best and what traffic asks for.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "workloads/study/search/energy_floor.h"
#include "workloads/study/search/pool_rates.h"
#include "workloads/study/search/serving_demand.h"
#include "workloads/study/search/serving_score.h"

namespace moebius {

struct ServingBound {
  double score = 0;  // no run scores lower
  double work =
      0;  // seconds of the pools' work at least, whatever comes when: the less, the more room is left
};

class ServingBounds {
 public:
  // `attainment` > 0: the goal's figure is the highest rate of requests that keeps that share of promises.
  // `data`: of cost sources, as the executors'.
  ServingBounds(const ServingScore& score, double attainment, std::string data)
      : score_(score), attainment_(attainment), data_(std::move(data)) {}

  // By several threads. `scenario` outlives this. `cache_tokens`: of the smallest cache of a replica, by
  // pool.
  ServingBound of(const Scenario& scenario, const ServingDemand& demand, const std::vector<PoolRates>& pools,
                  std::int64_t cache_tokens) const;

 private:
  std::vector<EnergyFloor> floors_of(const Scenario& scenario) const;

  const ServingScore& score_;
  double attainment_;
  std::string data_;
  mutable std::mutex mutex_;
  mutable std::map<const Scenario*, std::vector<EnergyFloor>> floors_;
};

// The most that a request of any class is promised for a token after its first; 0: some class is promised
// nothing.
double promised_tpot(const Scenario& scenario);

}  // namespace moebius
