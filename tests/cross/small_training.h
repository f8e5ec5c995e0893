// A mixture-of-experts model small enough to be trained in a test, executed by the host from the schedule
// that is simulated.
#pragma once

#include <memory>
#include <vector>

#include "real/host/host_executor.h"
#include "workloads/training/layers/builder.h"
#include "workloads/training/training.h"

namespace moebius {

// Two layers, the first dense, the second with four experts of which two are active, and a shared one.
inline Model small_model(AttentionKind attention) {
  Model model;
  model.id = "small";
  model.layers = 2;
  model.hidden = 32;
  model.heads = 4;
  model.kv_heads = attention == AttentionKind::kGqa ? 2 : 4;
  model.head_dim = 8;
  model.attention = attention;
  if (attention == AttentionKind::kMla)
    model.mla = {.q_rank = 12, .kv_rank = 16, .nope_dim = 8, .rope_dim = 4, .v_dim = 6};
  model.dense_width = 48;
  model.experts = {.routed = 4, .active = 2, .shared = 1, .width = 16, .shared_width = 24};
  model.first_dense = 1;
  model.vocabulary = 64;
  return model;
}

// Shared experts count times the sigmoid of a number a token (Qwen2-MoE).
inline Model with_shared_gate(Model model) {
  model.experts.shared_gate = true;
  return model;
}

// Queries, keys and values with a bias each (Qwen2).
inline Model with_biases(Model model) {
  model.biases = Biases::kQkv;
  return model;
}

// Two delta networks before each attention layer, which has an output gate and turns half of its heads.
inline Model small_delta_model() {
  Model model = small_model(AttentionKind::kGqa);
  model.id = "small with delta networks";
  model.layers = 3;
  model.full_attention_every = 3;
  model.qk_norm = QkNorm::kPerHead;
  model.output_gate = true;
  model.rotary_dim = 4;
  model.delta = {.key_heads = 2, .value_heads = 4, .key_dim = 6, .value_dim = 10, .convolution = 4};
  return model;
}

// The parts of a DeepSeek-V3: three layers with latent attention, the first dense, the others with eight
// experts in four groups of which a token uses two, one expert of each, beside a shared one; and a module
// that predicts the token after the next.
inline Model full_model() {
  Model model = small_model(AttentionKind::kMla);
  model.id = "full";
  model.layers = 3;
  model.experts.routed = 8;
  model.experts.groups = 4;
  model.experts.active_groups = 2;
  model.experts.score = GateScore::kSigmoid;
  model.experts.scale = 2.5;
  model.mtp_layers = 1;
  return model;
}

// Every token uses all experts, so that no choice depends on how tokens are spread.
inline Model all_experts(Model model) {
  model.experts.active = model.experts.routed;
  return model;
}

inline TrainingJob small_job(const Model& model) {
  TrainingJob job;
  job.model = model;
  job.plan.fold = false;
  job.workload.sequence_length = 16;
  job.workload.global_batch = 4;
  job.workload.micro_batch = 1;
  job.ranks_per_node = 8;
  return job;
}

// A job and its execution; from run() on, everything can be looked at.
template <class Real>
class SmallRun {
 public:
  SmallRun(const TrainingJob& job, const HostOptions& options)
      : training_(job),
        recorder_(training_.layout(), {.detail = Detail::kNone}),
        executor_(training_.layout(), recorder_, options) {}

  HostExecutor<Real>& run() {
    execute(training_, executor_, recorder_);
    return executor_;
  }
  HostExecutor<Real>& executor() { return executor_; }
  int ranks() const { return training_.layout().ranks; }

 private:
  Training training_;
  Recorder recorder_;
  HostExecutor<Real> executor_;
};

}  // namespace moebius
