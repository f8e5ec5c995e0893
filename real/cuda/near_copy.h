// Operands that stand on another device, brought into the memory of an op that reads them. Devices reach each
// other directly where the machine lets them (NVLink, PCIe), else by way of the host: device.h decides.
#pragma once

#include <vector>

#include "real/cuda/device_op.h"

namespace moebius::cuda {

// Where `ranks` ranks stand: contiguous blocks over `devices` devices, of which no more than ranks are used.
std::vector<int> devices_of_ranks(int ranks, int devices);

// y = x, which stands on device `from`, in the order of the op's stream. One format and shape; rows of larger
// matrices where the format has no scales, or scales by row.
void bring(DeviceOp& c, const Operand& x, int from, const Operand& y);
// The same into memory of the op.
Operand brought(DeviceOp& c, const Operand& x, int from);
// Elements [first, first + count) of a matrix without scales, counted row by row, as a column.
Operand brought_flat(DeviceOp& c, const Operand& x, int from, std::int64_t first, std::int64_t count);

}  // namespace moebius::cuda
