#include "workloads/study/search/lone_stage.h"

namespace moebius {

bool runs_pairs(const TrainingPlan& plan) {
  return plan.overlap_two_batch || plan.schedule == PipelineKind::kDualPipe ||
         plan.schedule == PipelineKind::kDualPipeV;
}

bool whole_reverse(PipelineKind kind) {
  return kind == PipelineKind::kGpipe || kind == PipelineKind::k1F1B || kind == PipelineKind::kInterleaved;
}

bool split_alone(const TrainingPlan& plan) {
  return !whole_reverse(plan.schedule) && !runs_pairs(plan);
}

TrainingPlan lone_stage(TrainingPlan plan) {
  plan.schedule = split_alone(plan) ? PipelineKind::kZbH1 : PipelineKind::k1F1B;
  plan.overlap_two_batch = false;
  plan.chunks = plan.pp = 1;
  return plan;
}

}  // namespace moebius
