// Communication ops between ranks of one device or several.
#pragma once

#include "real/cuda/device_exchange.h"
#include "real/cuda/device_op.h"

namespace moebius::cuda {

// Gives a communication op to the device, once all members are there. The rounds, their bytes and the order
// of sums are those of the host executor (real/host/host_communication.h); members that bring different sizes
// are run_error. With `nccl`, which may be null, what groups exchange that have a device for each member is
// its work, and so is the order of their sums (see nccl_sum_error()); messages and uneven shards are not.
void communicate(DeviceOp& c, DeviceExchange& exchange, Nccl* nccl);

}  // namespace moebius::cuda
