// Do the tensors of a checkpoint go with a model: all there, none too many, each of the right shape?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/weights/stored_type.h"
#include "models/weights/weight_names.h"

namespace moebius {

struct FoundWeight {
  StoredType type = StoredType::kF32;
  std::vector<std::int64_t> shape;
};

// input_error "CHECKPOINT: tensor "x" of MODEL ..., found ... (did you mean "y"?)" for the first tensor, by
// name, that is missing, unknown, wrongly shaped or, in 8 bits, without its scales. Optional weights may be
// absent.
void check_weights(const std::string& checkpoint, const Model& model, const std::vector<Weight>& expected,
                   const std::map<std::string, FoundWeight>& found);

// input_error "CHECKPOINT: the weights of MODEL are not mapped: ..." for an architecture that has no names
// here.
void require_mapped(const std::string& checkpoint, const Model& model);

}  // namespace moebius
