// The experts of a service's pools: their popularity over time, and what iterations of each instance take
// with the loads that follow.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "workloads/service/drafter.h"
#include "workloads/service/pools.h"
#include "workloads/serving/system/expert_figures.h"
#include "workloads/serving/system/expert_steps.h"
#include "workloads/serving/system/iteration_timer.h"

namespace moebius {

class PoolExperts {
 public:
  // What carries out the pool's iterations, and those of evenly loaded experts, with what makes guesses in
  // them; `drafter`: null where nothing does.
  struct Timed {
    IterationTimer& timer;
    Drafter* drafter;
    StepSurface& even;
  };
  // All outlive the experts; `course` is that of the whole service.
  PoolExperts(const ServicePool& pool, const Scenario& scenario, ExpertCourse& course, const Timed& timed);

  // By instance; none where no expert is shared among ranks, or tokens choose evenly.
  std::vector<StepCost*> costs();
  BusySources busy() const { return loads_->busy(); }  // what uneven loads add
  ExpertFigures figures();                             // and how far iterations with uneven loads are off

 private:
  SurfaceError error();
  StepTime time(const StepPoint& point, const SlotDraw& draw);
  SlotDraw& draw_with(double imbalance);

  const ServicePool& pool_;
  ExpertCourse& course_;
  Timed timed_;
  BalancerShape shape_;
  SlotDraw even_;
  std::vector<double> typical_loads_;  // of slots: how those of a rank are to each other
  std::map<double, SlotDraw> drawn_;   // by imbalance
  std::unique_ptr<LoadSurfaces> loads_;
  std::vector<std::unique_ptr<ExpertSteps>> steps_;
};

// How a pool's experts are spread over the ranks of an instance.
BalancerShape balancer_shape(const ServicePool& pool);

// Whether ranks of a pool share experts: else there is nothing to place.
bool shares_experts(const ServicePool& pool);

// How evenly loaded iterations of a pool deal tokens to slots. No weights.
SlotDraw even_draw(const ServicePool& pool, const ExpertBalancePlan& plan, const ExpertCourse& course);

// The weights of one expert of a layer.
double expert_bytes(const Model& model, DType weights);

}  // namespace moebius
