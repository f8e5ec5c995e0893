// The stages of a pool whose layers stand one behind the other: each timed on an executor of its own, and
// what they hand on, too.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workloads/perform/perform.h"
#include "workloads/service/pools.h"
#include "workloads/serving/system/iteration_timer.h"
#include "workloads/serving/system/pipeline_cost.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

// From one edge of keys to the next, of surfaces of iterations of such a plan.
StepSurface::KeyStep key_step(const ServingPlan& plan);

// A stage behind the first one.
class TimedStage {
 public:
  // `job` outlives this. `known`: see StepSurface.
  TimedStage(const Job& job, const ServingWorkload& work, const StartExecutor& start,
             const std::shared_ptr<RouteCache>& balanced, StepSurface::Known* known);
  StepSurface& surface() { return surface_; }

 private:
  Recorder recorder_;
  StartedExecutor engine_;
  ServingJob served_;
  IterationTimer timer_;
  StepSurface surface_;
};

// Rows on their way from all ranks of a stage to those of another, each rank sending its part to one.
class StageLink {
 public:
  // `job` outlives this; `from`, `to`: the first devices of the stages.
  StageLink(const Job& job, int ranks, std::int32_t from, std::int32_t to, const StartExecutor& start);
  double seconds(double bytes);  // of a rank; between powers of two of them interpolated

 private:
  double timed(double bytes);

  Layout layout_;
  Recorder recorder_;
  StartedExecutor engine_;
  SteadyTimer timer_;
  std::map<double, double> known_;  // by bytes
  std::int32_t sequence_ = 0;
};

class ServedPipeline {
 public:
  // `pool` and `first`, what iterations of its first stage take, outlive this.
  ServedPipeline(const ServicePool& pool, const ServingWorkload& work, const StartExecutor& start,
                 StepSurface& first, const std::shared_ptr<RouteCache>& balanced, StepTimings* timings);

  std::vector<StepCost*> costs();  // by lane: those of the first instance, those of the second ...
  PipelineCost::Totals totals() const;
  std::int64_t measured() const;
  BusySources busy() const;  // of the stages behind the first one
  SurfaceError error();      // of the stage that is furthest off

 private:
  PipelineCost::Stage stage(int number);
  StageLink& link(int from, int to);

  const ServicePool& pool_;
  StartExecutor start_;
  StepSurface& first_;
  std::map<std::string, std::unique_ptr<TimedStage>> timed_;  // by what their layers are
  std::vector<TimedStage*> further_;                          // by stage, behind the first one
  std::map<bool, std::unique_ptr<StageLink>> links_;          // within a node, and between two
  std::vector<std::unique_ptr<PipelineCost>> costs_;          // by instance
};

}  // namespace moebius
