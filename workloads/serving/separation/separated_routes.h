// To which expert ranks the tokens of a microbatch go: to their experts in layers that have such, and in
// dense layers each to one rank, dealt evenly, since every expert rank holds the whole MLP.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "workloads/schedule/batch.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/plan.h"
#include "workloads/training/layers/lowering.h"

namespace moebius {

class SeparatedRoutes {
 public:
  explicit SeparatedRoutes(const ServingJob& job);

  void draw(const SlotDraw* loads) { loads_ = loads; }  // as IterationRoutes
  // By replica, by microbatch.
  void begin(const std::vector<std::vector<BatchPtr>>& batches);
  RoutePtr get(int layer, int microbatch);

 private:
  bool balanced() const { return job_.workload.popularity.kind == PopularityKind::kBalanced; }
  std::int32_t rows_of(const Batch& batch) const;  // that choose
  TokenRuns runs_of(int microbatch) const;
  RouteSpec spec_of(int layer, int microbatch);
  RoutePtr drawn(int layer, int microbatch);

  const ServingJob& job_;
  std::vector<std::vector<BatchPtr>> batches_;
  std::vector<TokenRuns> runs_;                    // by microbatch
  std::vector<int> most_;                          // tokens of a replica, by microbatch
  std::map<std::pair<int, int>, RoutePtr> drawn_;  // of this iteration, by layer and microbatch
  RouteCache balanced_, dense_;
  PopularityCourse course_;
  const SlotDraw* loads_ = nullptr;
};

}  // namespace moebius
