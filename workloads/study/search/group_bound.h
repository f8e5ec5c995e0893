// The least that a step can take with given degrees, in closed form, from single layers: no plan has to be
// lowered for it but one layer of each kind.
#pragma once

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
  // least as long as its layers one after the other; where the schedule runs passes in pairs, as long as any
  // lane is busy with both. A rank begins when the first microbatch has come to it, and where reverse passes
  // are whole, the stages before it end after it.
  double seconds(const TrainingPlan& plan, const TrainingWorkload& workload);
  double busy(const TrainingPlan& plan, const TrainingWorkload& workload);  // mean over ranks, at least

 private:
  struct Layer {
    double forward = 0, backward = 0;  // seconds of a pass
    double busy = 0;                   // of computing, both ways
    std::array<double, kNumLanes> lanes{};
  };
  struct Parts {
    Layer dense, moe;             // a layer
    Layer embedding, head;        // beside a layer of their stage
  };
  Parts parts_of(const TrainingPlan& plan, const TrainingWorkload& workload);
  std::vector<Layer> stages_of(const TrainingPlan& plan, const TrainingWorkload& workload);
  std::shared_ptr<const std::vector<StageSlice>> slices(const TrainingPlan& plan);

  const Scenario& scenario_;
  StageProbes& probes_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<const std::vector<StageSlice>>> slices_;
};

}  // namespace moebius
