// Which experts the tokens of an iteration choose, layer by layer. By popularity: a function of seed, layer,
// request and position, so that neither the batch nor the number of ranks changes what a request computes.
// Balanced: dealt over the tokens of the iteration, equal for all layers; it is the ideal that a load
// balancer aims for, and what a token uses then depends on who shares the iteration.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "workloads/schedule/batch.h"
#include "workloads/serving/plan.h"
#include "workloads/training/layers/lowering.h"

namespace moebius {

class IterationRoutes {
 public:
  explicit IterationRoutes(const ServingJob& job);

  void begin(const std::vector<BatchPtr>& batches);  // by replica
  // Of the expert group that stands at ranks group * ep ... Of a replica of several ranks, each is the whole.
  RoutePtr get(int group, int layer);

 private:
  TokenRuns runs_of(int group) const;

  const ServingJob& job_;
  std::vector<BatchPtr> batches_;
  std::map<int, std::pair<TokenRuns, int>> runs_;   // by group: with the most tokens of a rank
  std::map<std::pair<int, int>, RoutePtr> routes_;  // of this iteration, by group and layer
  RouteCache balanced_;
  PopularityCourse course_;
};

}  // namespace moebius
