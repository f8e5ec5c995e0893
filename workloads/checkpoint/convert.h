// `moebius convert`: a checkpoint from one layout to another.
#pragma once

#include <string>

#include "models/model.h"
#include "workloads/checkpoint/checkpoint.h"

namespace moebius {

struct ConvertRequest {
  std::string in, to, out;
  std::string model;             // a name of the catalog; empty: as the checkpoint says
  double most_file_bytes = 5e9;  // of one Hugging Face file; what their tools write by default
};

// Writes request.out and returns a line about it. Every byte of every tensor is kept; memory is bounded by
// the largest tensor. Errors: input_error for what is wrong with the checkpoint or the layout, run_error for
// what cannot be written.
std::string convert(const ConvertRequest& request, const ModelCatalog& catalog);

// The model that the weights are of: the one named, or that of our index, or of config.json beside the
// weights.
Model model_of(const Checkpoint& checkpoint, const std::string& name, const ModelCatalog& catalog);

// require_mapped() and check_weights() of models/weights/weight_check.h.
void check_checkpoint(const Checkpoint& checkpoint, const Model& model);

}  // namespace moebius
