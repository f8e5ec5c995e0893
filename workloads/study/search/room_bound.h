// The least memory that a plan fills, in closed form, from single layers: no plan has to be lowered for it
// but one and two layers of each kind.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "workloads/study/search/stage_probes.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

// What a pipeline rank holds of microbatches at the moment when most of them are under way.
struct UnderWay {
  std::vector<int> whole;  // by chunk: passed forward and not back
  std::vector<int> left;   // passed back, the gradients of their weights still to come
};
// By rank. Of a schedule of more microbatches than a few for each stage the beginning alone is looked at:
// then a moment of it.
std::vector<UnderWay> under_way(PipelineSpec spec);

class RoomBound {
 public:
  RoomBound(const Scenario& scenario, StageProbes& probes) : scenario_(scenario), probes_(probes) {}

  struct Layer {
    ChunkFacts::Held dense, experts;
    double kept = 0, left = 0;  // of a microbatch
    double here = 0;            // of what is kept, where activations go to the host, what does not
  };
  // What the stages of a legal plan hold at least. A layer holds what two hold more than one, so that what
  // layers share counts for none; where no two of a kind stand side by side, nothing. `switches`: a number of
  // what the plan has beside its degrees, for remembering.
  std::vector<Layer> stages(const TrainingPlan& plan, const TrainingWorkload& workload, int switches);
  // Bytes of the fullest rank. `stages`: of one that differs from `plan` in shards and host memory alone.
  double of(const std::vector<Layer>& stages, const TrainingPlan& plan, const TrainingWorkload& workload);

 private:
  struct Parts {
    Layer dense, moe;       // a layer
    Layer embedding, head;  // beside a layer of their stage
  };
  using Key = std::array<int, 10>;
  using Schedule = std::tuple<int, int, int, int, bool>;
  Layer one_more(const TrainingPlan& plan, const TrainingWorkload& workload, bool moe);
  Parts parts_of(const TrainingPlan& plan, const TrainingWorkload& workload);
  std::shared_ptr<const Parts> known_parts(const TrainingPlan& plan, const TrainingWorkload& workload,
                                           int switches);
  std::shared_ptr<const std::vector<UnderWay>> known_under_way(const PipelineSpec& spec);

  const Scenario& scenario_;
  StageProbes& probes_;
  std::mutex mutex_;  // of what follows
  std::map<Key, std::shared_ptr<const Parts>> parts_;
  std::map<Schedule, std::shared_ptr<const std::vector<UnderWay>>> under_way_;
};

}  // namespace moebius
