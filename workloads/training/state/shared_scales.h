// How 8-bit weights are made of those that were updated: by every rank from a whole one, or from its shard by
// a scale that all ranks share.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/training/layers/builder.h"
#include "workloads/training/plan.h"

namespace moebius {

// Quantises a whole weight: first a pass that finds its largest magnitude, where one scale of a tensor needs
// it. `ways`: Shape::heads of the quantisation, one copy or both. Returns its op.
std::int32_t quantise_weight(FragmentBuilder& builder, TensorId half, TensorId weight, std::int32_t ways,
                             const std::vector<std::int32_t>& after = {});

// Shards of weights with one scale for the tensor (shares_scale()): after all updates the largest magnitude
// of each is found, one small all-reduce makes them those of whole weights, and shards are cast, so that they
// can be gathered in 8 bits (torchao's precompute_float8_dynamic_scale_for_fsdp).
class SharedScales {
 public:
  SharedScales(const TrainingPlan& plan, FragmentBuilder& builder) : plan_(plan), builder_(builder) {}

  void add(TensorId half, const Tensor& weight);  // `half`: the shard that the update wrote
  void write();

 private:
  struct Shard {
    TensorId half;
    Tensor weight;  // whole
  };

  void write(const std::vector<Shard>& shards, bool expert);

  const TrainingPlan& plan_;
  FragmentBuilder& builder_;
  std::vector<Shard> shards_[2];  // of experts the second
};

// Delayed scaling (Scaling::kHistory): what a pass found of the magnitudes of its FP8 products' tensors,
// three of a product forward and two back, is made that of all who share the scales before the next pass
// begins (Transformer Engine, reduce_and_update_fp8_tensors: at the end of fp8_autocast and of the way back).
void share_magnitudes(const TrainingPlan& plan, Phase phase, FragmentBuilder& builder);

}  // namespace moebius
