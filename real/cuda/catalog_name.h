// What a CUDA device is called in catalogs.
#pragma once

#include <cctype>
#include <string>

#include "real/cuda/device.h"

namespace moebius::cuda {

// "NVIDIA H100 80GB HBM3": h100-80gb-hbm3.
inline std::string catalog_name(const DeviceFacts& facts) {
  std::string name = facts.name;
  for (char& c : name)
    c = std::isalnum(static_cast<unsigned char>(c)) != 0
            ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
            : '-';
  return name.starts_with("nvidia-") ? name.substr(7) : name;
}

}  // namespace moebius::cuda
