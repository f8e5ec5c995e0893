// What iterations of one instance take whose experts are loaded unevenly: the evenly loaded iteration, what
// the loads of the moment add to it, and what moving weights add.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "workloads/serving/balancing/expert_balancer.h"
#include "workloads/serving/system/load_surfaces.h"
#include "workloads/serving/system/step.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

// Weights by which tokens draw the slots of some layers, at one moment of an instance.
using SlotWeights = std::vector<ExpertWeights>;

class ExpertSteps : public StepCost {
 public:
  struct Links {  // all outlive the steps; surfaces and course are shared by the instances of a pool
    StepSurface* even = nullptr;
    LoadSurfaces* loads = nullptr;
    ExpertCourse* course = nullptr;
    double seconds_of_move = 0;  // that a rank takes for the weights of one expert, when nothing else moves
  };
  ExpertSteps(const Links& links, const ExpertBalancePlan& plan, const BalancerShape& shape);

  void begin(Time now, bool gives_tokens) override;
  double seconds(std::span<const StepShape> replicas) override;
  StepStalls stalls(std::span<const StepShape> replicas, double seconds) override;
  double forecast(std::span<const StepShape> replicas) override;  // with the loads of the moment
  double balancedness() const override { return 1 / balancer_.imbalance_now(); }

  const ExpertBalancer& balancer() const { return balancer_; }
  ExpertBalancer& balancer() { return balancer_; }

  // Iterations of the run, drawn evenly, with what they would be said to take were all layers as some of
  // them: those in the middle of each eighth when they stand by imbalance.
  struct Sample {
    StepPoint point;
    std::shared_ptr<const SlotWeights> weights;  // of these layers
    double seconds = 0;
  };
  static constexpr std::int64_t kSampled = 16;
  static constexpr int kSampledLayers = 8;
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  void take_shares();
  // `times`: see StepSurface::at().
  double added(const StepPoint& point, const std::vector<double>& shares, double times = 0);
  static StepPoint fullest(std::span<const StepShape> replicas);
  double moved(const StepPoint& point, double lasts);
  void sample(const StepPoint& point);
  void sample_layers();

  Links links_;
  ExpertBalancePlan plan_;
  BalancerShape shape_;
  ExpertBalancer balancer_;
  std::uint64_t version_ = 0;   // of the balancer, that shares are of
  std::vector<double> shares_;  // of layers, by edge of the imbalance
  std::vector<Sample> samples_;
  std::int64_t asked_ = 0;
  std::shared_ptr<const SlotWeights> weights_;  // of sampled layers and this version; null: not asked for yet
  std::vector<double> sampled_shares_;          // of these layers alone, as shares_
  double worth_ = 0;  // seconds for each unit of imbalance of a layer, of all iterations since `since_`
  Time now_, since_;
  StepStalls stalls_;  // of the last iteration, but for the barrier
  double even_ = 0;    // seconds of it, were experts loaded evenly
};

}  // namespace moebius
