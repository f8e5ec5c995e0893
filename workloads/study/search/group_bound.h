// The least that a step can take with given degrees, in closed form, from single layers: no plan has to be
// lowered for it but one layer of each kind, and two and three where activations go to the host.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "workloads/study/search/stage_probes.h"

namespace moebius {

class GroupBound {
 public:
  GroupBound(const Scenario& scenario, StageProbes& probes) : scenario_(scenario), probes_(probes) {}

  // Of a legal plan, by several threads. Passes of one stage follow each other on its rank, a pass lasts at
  // least as long as its layers one after the other, each part of a reverse pass in two; where the schedule
  // runs passes in pairs, as long as any lane is busy with both. A rank begins when the first microbatch has
  // come to it, and where reverse passes are whole, the stages before it end after it. Activations that go to
  // the host keep its copies busy at least as long as those of all groups of layers of a stage but the last
  // take both ways; how passes wait for them is left out. `switches`: a number of what the plan has beside
  // its degrees, for remembering.
  struct Least {
    double seconds = 0, busy = 0;  // of a step; of computing, mean over ranks
  };
  // `coarse`: whatever the expert-parallel degrees are, without their routes.
  Least of(const TrainingPlan& plan, const TrainingWorkload& workload, int switches, bool coarse = false);

 private:
  struct Layer {
    double forward = 0, backward = 0;       // seconds of a pass
    std::array<double, kNumLanes> lanes{};  // busy, both ways

    void add(const Layer& other, double share = 1) {
      forward += share * other.forward;
      backward += share * other.backward;
      for (int lane = 0; lane < kNumLanes; ++lane) lanes[lane] += share * other.lanes[lane];
    }
  };
  static Layer beyond(const Layer& whole, const Layer& part);  // what one has that the other has not
  struct Parts {
    Layer dense, moe;                         // a layer
    Layer embedding, head;                    // beside a layer of their stage
    double dense_copies = 0, moe_copies = 0;  // seconds of a layer's activations to the host and back
  };
  using Key = std::array<int, 14>;
  Layer layer_of(const TrainingPlan& plan, const TrainingWorkload& workload, const StageSlice& slice,
                 Costing costing = Costing::kAllCores);
  // Of layers that turn queries and keys and of those that do not, whichever takes less; nothing where there
  // are none with experts, or without.
  Layer least_of(const TrainingPlan& plan, const TrainingWorkload& workload, bool moe, Costing costing);
  Parts parts_of(const TrainingPlan& plan, const TrainingWorkload& workload, bool coarse);
  std::shared_ptr<const Parts> known_parts(const TrainingPlan& plan, const TrainingWorkload& workload,
                                           int switches, bool coarse);
  double copies_of(const TrainingPlan& plan, const TrainingWorkload& workload, bool moe);
  std::vector<Layer> stages_of(const TrainingPlan& plan, const Parts& parts);
  static double seconds(const TrainingPlan& plan, const std::vector<Layer>& stages, double microbatches);

  const Scenario& scenario_;
  StageProbes& probes_;
  std::mutex mutex_;  // of what follows
  std::map<Key, std::shared_ptr<const Parts>> parts_;
};

}  // namespace moebius
