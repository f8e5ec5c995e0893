// What a report says of the experts of a pool.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/serving/balancing/expert_balancer.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

struct ExpertFigures {
  int layers = 0, experts = 0, slots = 0, ranks = 0;  // slots of a layer
  bool even = true;                                   // popularity is: nothing to balance
  double imbalance = 1;               // fullest rank over mean: over layers, tokens and instances, mean
  std::vector<Rebalance> rebalances;  // of all instances, one instance after the other
  std::int64_t more_rebalances = 0;   // than are kept
  std::vector<double> copies;         // by layer and expert, of all instances
  std::vector<int> layer_numbers;     // of the model
  bool carried = false;               // every op was carried out: what moves cost is in the iterations
  SurfaceError error;                 // of iterations with these loads, which were timed
  std::int64_t timed_iterations = 0;  // with loads and moves
};

// Of instances with the same shape; what their balancers counted last counts, too.
ExpertFigures figures_of(const ExpertCourse& course, const BalancerShape& shape,
                         const std::vector<ExpertBalancer*>& instances);

}  // namespace moebius
