// Communication ops between ranks of one device.
#pragma once

#include "real/cuda/device_exchange.h"
#include "real/cuda/device_op.h"

namespace moebius::cuda {

// Gives a communication op to the device, once all members are there. The rounds, their bytes and the order
// of sums are those of the host executor (real/host_communication.h); members that bring different sizes are
// run_error.
void communicate(DeviceOp& c, DeviceExchange& exchange);

}  // namespace moebius::cuda
