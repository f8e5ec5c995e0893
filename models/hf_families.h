// How each model_type of the Hugging Face hub names the parts of its architecture.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

struct HfFamily {
  std::string_view model_type;
  Model (*read)(HfKeys& keys);
  std::optional<Fp8Scales> scales = {};  // of its checkpoints in 8 bits that are published, as in the catalog
};

std::span<const HfFamily> hf_families();

}  // namespace moebius
