// A pool of a service while it is simulated: one instance on an executor of its own, and what its iterations
// take.
#pragma once

#include <memory>
#include <optional>

#include "workloads/perform/perform.h"
#include "workloads/service/drafter.h"
#include "workloads/service/encoder.h"
#include "workloads/service/experts.h"
#include "workloads/service/pipeline.h"
#include "workloads/service/pools.h"
#include "workloads/serving/system/iteration_timer.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {

class TimedPool {
 public:
  // `pool` outlives this. `timings`: what is known of its iterations, which this adds to; null: how far the
  // surface is off is judged instead.
  TimedPool(const ServicePool& pool, const Popularity& popularity, const StartExecutor& start,
            StepTimings* timings);

  // Experts that ranks share: where they stand, and what their loads do to iterations.
  void place_experts(const Scenario& scenario, ExpertCourse& course);
  // The images of its prompts are encoded by its own devices.
  void encode_with(ServedEncoder& encoder) { encoder_ = &encoder.timer(); }
  std::optional<EncodingCost::Totals> encoding() const;

  PoolRules rules(const ServicePlan& service);
  ServicePoolFigures figures(const PoolFigures& run);
  BusySources busy() const;  // of all iterations, but for encoders and weights that move
  RunFacts& facts() { return engine_.facts; }
  StepSurface& surface() { return surface_; }  // of evenly loaded experts

 private:
  StepTime time(const StepPoint& point);  // of one iteration that is carried out
  std::vector<StepCost*> costs();
  PoolTariff tariff() const;
  double drawn() const;  // joules, of all iterations
  int accelerators_of_node() const { return pool_.job->scenario.cluster->pools.front().node.accelerators; }

  const ServicePool& pool_;
  bool judged_;           // how far the surface is off
  double tiers_usd_ = 0;  // an hour, of a device
  Recorder recorder_;
  StartedExecutor engine_;
  IdleWatts idle_watts_;  // of its devices
  ServingJob served_;
  IterationTimer timer_;
  std::optional<Drafter> drafter_;
  StepSurface surface_;  // of one stage, the first one
  std::optional<ServedPipeline> pipeline_;
  EncoderTimer* encoder_ = nullptr;
  std::vector<std::unique_ptr<EncodingCost>> encoding_;  // by instance, or of all
  std::optional<SlotDraw> even_;                         // where experts are placed
  std::unique_ptr<PoolExperts> experts_;
};

}  // namespace moebius
