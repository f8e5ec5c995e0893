// Which tensors of a fragment come and go, and how: the rules that away_state.cpp writes it anew by.
#pragma once

#include <set>
#include <vector>

#include "workloads/training/state/away_state.h"

namespace moebius {

bool writes_shards(const Op& op, const Fragment& fragment);
// Gradients that a fragment sums so.
std::set<TensorId> summed_into_shards(const Fragment& fragment);

// Gradients of norms under sequence parallelism, which ranks of a tensor group hold parts of.
bool sums_tensor_parts(const Op& op);

// `plan` and `away` outlive it.
class AwayRules {
 public:
  AwayRules(const TrainingPlan& plan, const AwayState& away) : plan_(plan), away_(away) {}

  bool offloaded(const Tensor& tensor) const;
  // Weights of which each rank holds a shard.
  bool gathers(const Tensor& tensor) const;
  // Stands here, but of what the optimizer wrote only this rank's shard is new.
  bool refreshes(const Tensor& tensor) const;
  // Whole gradients that end in the members' shards: sums of one microbatch, or of a step.
  bool passes(const Tensor& tensor) const;
  // Of those and of gathered weights, what stands longer than this fragment; kCut: nothing.
  WeightsStand found(const Tensor& weight) const;
  WeightsStand left(const Tensor& weight) const;
  // What a gather fills, as it travels: of the fragment, or of the step where it is found whole or left so.
  Tensor gathered_whole(const Tensor& weight) const;
  // What the forward passes of the chunk left and its last reverse pass has no use for, as an embedding.
  std::vector<Tensor> others_freed() const;

 private:
  bool is_whole_weight(const Tensor& tensor) const;
  WeightsStand of(const Tensor& weight, WeightsStand stand) const;

  const TrainingPlan& plan_;
  const AwayState& away_;
};

// A pass of a stage of which all is frozen: what the forward passes left goes all the same.
FragmentPtr freeze_without_ops(const TrainingPlan& plan, const AwayState& away, FragmentBuilder builder);

}  // namespace moebius
