// Weights of single experts, which stand one below the other in a matrix, as they are stored.
#pragma once

#include <vector>

#include "real/cuda/device_op.h"
#include "real/cuda/nccl.h"

namespace moebius::cuda {

// One of the experts of a matrix, each of so many rows.
struct ExpertPlace {
  Operand of;
  std::int64_t rows = 0;
  std::int64_t number = 0;
};

// Its codes, and its scales where the format has some.
std::vector<NcclPiece> pieces_of_expert(const ExpertPlace& expert);
// to = from, which stands on `device`, in the order of the op's stream.
void copy_expert(DeviceOp& c, const ExpertPlace& from, int device, const ExpertPlace& to);

}  // namespace moebius::cuda
