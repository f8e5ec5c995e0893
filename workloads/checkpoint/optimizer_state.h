// The optimizer's state in a checkpoint: FP32 master weights and Adam's two moments, so that a run that goes
// on does so to the bit. Unlike weights it is kept as the ranks hold it, and goes on under the same plan
// only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/weights/safetensors.h"
#include "workloads/checkpoint/checkpoint_index.h"
#include "workloads/checkpoint/new_directory.h"
#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"
#include "workloads/training/plan.h"

namespace moebius {

// What decides which rank holds which part of the state.
StateLayout state_layout(const TrainingPlan& plan);

// The rank that writes what `rank` holds of a state tensor: the first of its replicas, or itself where
// replicas cut the state between them (ZeRO).
std::int32_t state_writer(const Layout& layout, const TrainingPlan& plan, std::int32_t rank,
                          const Tensor& state);

// A state tensor as a rank holds it.
struct HeldState {
  std::int32_t rank = 0;
  Tensor tensor;
  std::span<const float> values;
};

// One file for each rank that has something to write, tensors named ROLE.LAYER.PART in FP32; returns their
// names, "" for ranks without. run_error when something cannot be written.
std::vector<std::string> write_states(const NewDirectory& directory, int ranks,
                                      std::span<const HeldState> states);

class OptimizerState {
 public:
  // Of a checkpoint's directory. input_error "DIR: ..." when it holds none, or that of another plan.
  OptimizerState(const std::string& directory, const CheckpointIndex& index, const TrainingPlan& plan);

  // What `writer` wrote of a tensor; any thread. input_error when it is not there or of another size.
  std::vector<double> load(std::int32_t writer, const Tensor& state) const;

 private:
  std::string directory_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;  // by rank
};

}  // namespace moebius
