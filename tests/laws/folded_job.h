// A small training job laid over nodes of four devices, for laws that run it folded and unfolded.
#pragma once

#include "../unit/training/small_job.h"

namespace moebius {

struct FoldedPlan {
  int pp = 1, ep = 1, tp = 1;
  double zipf = 0;  // 0: experts are balanced
};

inline TrainingJob folded_job(const FoldedPlan& plan, int nodes) {
  TrainingJob job = small_job();
  job.plan.pp = plan.pp;
  job.plan.ep = plan.ep;
  job.plan.tp = plan.tp;
  job.plan.sequence_parallel = plan.tp > 1;
  job.plan.dp = nodes * 4 / plan.pp / plan.tp;
  job.plan.zero = 1;
  job.workload.global_batch = 3 * job.plan.dp;
  job.ranks_per_node = 4;
  if (plan.zipf > 0) job.workload.popularity = {PopularityKind::kZipf, plan.zipf, false};
  return job;
}

}  // namespace moebius
