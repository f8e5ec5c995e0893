// Parameters of a schedule's ranks out of a checkpoint, and into one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "workloads/checkpoint/checkpoint.h"
#include "workloads/checkpoint/checkpoint_writer.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

// The starting values of a parameter, row-major, from a checkpoint that passed require_executable().
std::vector<double> load_parameter(const Checkpoint& checkpoint, const Model& model, const Tensor& parameter);

// Beside check_checkpoint(): input_error when the checkpoint holds weights that no schedule computes with
// (biases of all maps, or of the output map): losses and answers would be those of another model.
void require_executable(const Checkpoint& checkpoint, const Model& model);

// Before a run that will be saved: input_error when something is in the directory that may not be replaced,
// or when a training step holds less than checkpoints of this model must.
void require_savable(const std::string& directory, const Model& model, bool replace);

// A parameter as a rank holds it at the end of a run.
struct HeldParameter {
  std::int32_t file = 0;  // of the checkpoint
  Tensor tensor;
  std::span<const float> values;
};

struct SaveRequest {
  std::string directory;
  Degrees degrees;
  Model model;
  std::int64_t step = 0;
  const Checkpoint* source =
      nullptr;           // of the starting weights: keeps the spelling of names and what no step changes
  std::string config;    // config.json to go with it; empty: none
  bool replace = false;  // a checkpoint of the same run that is there gives way
  WriteBeside beside = {};
};

// Writes the weights as one of our checkpoints: 16-bit formats in BF16, which is exact; 8-bit ones, which a
// run scales by row and not by block, in FP32. Errors as write_checkpoint().
void save_parameters(const SaveRequest& request, std::span<const HeldParameter> parameters);

}  // namespace moebius
