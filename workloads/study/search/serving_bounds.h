// What no plan of a service can be better than, from what its pools can do at best and what traffic asks for.
#pragma once

#include <vector>

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
  ServingBounds(const ServingScore& score, double attainment) : score_(score), attainment_(attainment) {}

  // `cache_tokens`: of the smallest cache of a replica, by pool.
  ServingBound of(const Scenario& scenario, const ServingDemand& demand, const std::vector<PoolRates>& pools,
                  std::int64_t cache_tokens) const;

 private:
  const ServingScore& score_;
  double attainment_;
};

// The most that a request of any class is promised for a token after its first; 0: some class is promised
// nothing.
double promised_tpot(const Scenario& scenario);

}  // namespace moebius
