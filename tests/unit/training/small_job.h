// A small mixture-of-experts job for tests, and what its fragments add up to.
#pragma once

#include <algorithm>
#include <map>

#include "models/layer_math.h"
#include "workloads/training/training.h"

namespace moebius {

inline Model small_model() {
  Model model;
  model.id = "small";
  model.layers = 4;
  model.hidden = 64;
  model.heads = 4;
  model.kv_heads = 4;
  model.attention = AttentionKind::kMla;
  model.mla = {.q_rank = 32, .kv_rank = 16, .nope_dim = 16, .rope_dim = 8, .v_dim = 16};
  model.dense_width = 128;
  model.experts.routed = 8;
  model.experts.active = 2;
  model.experts.shared = 1;
  model.experts.width = 32;
  model.experts.shared_width = 32;
  model.first_dense = 1;
  model.vocabulary = 256;
  return model;
}

inline TrainingJob small_job() {
  TrainingJob job;
  job.model = small_model();
  job.plan.dp = 4;
  job.plan.ep = 4;
  job.workload.sequence_length = 32;
  job.workload.global_batch = 8;
  return job;
}

// Issues a whole job as if every submission completed at once.
inline std::vector<Submission> all_submissions(Training& training) {
  std::vector<Submission> submissions;
  while (auto submission = training.next({})) {
    submissions.push_back(*submission);
    training.completed({submission->sequence, {}});
  }
  return submissions;
}

inline double matrix_flops(const Fragment& fragment, OpKind kind) {
  double flops = 0;
  for (const Op& op : fragment.ops) {
    if (op.kind == kind) flops += op_flops(kind, op.shape).value;
  }
  return flops;
}

// Dense: every parameter has dp replicas, and all sizes divide by 4; gradients in BF16.
inline TrainingJob dense_job() {
  TrainingJob job = small_job();
  job.model.attention = AttentionKind::kGqa;
  job.model.head_dim = 16;
  job.model.experts = {};
  job.plan.ep = 1;
  job.plan.gradients = DType::kBf16;
  return job;
}

}  // namespace moebius
