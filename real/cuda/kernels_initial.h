// What parameters start from, made where they stand: real/initial_value.h on a device.
#pragma once

#include <cstdint>

#include "real/cuda/device.h"
#include "real/cuda/storage.h"
#include "real/initial_value.h"

namespace moebius::cuda {

// Elements from `first` on; from `beyond` on zeros.
struct FlatPart {
  std::int64_t first = 0, beyond = 0;
};
// y, in FP32 or BF16.
void initial_values(Stream stream, const InitialValues& of, const FlatPart& part, const Operand& y);

}  // namespace moebius::cuda
