// A CUDA device as one that calibration measures.
#pragma once

#include <string>

#include "hw/catalog.h"
#include "real/cuda/device.h"
#include "workloads/calibration/device/device_under_test.h"

namespace moebius {

// Its reference is the catalog's chip of this name (id or alias), else what the device says of itself, as
// "cuda-NAME". `out`: beside this file storage is measured. run_error: built without CUDA, no device.
DeviceUnderTest cuda_under_test(int index, const Catalog& catalog, const std::string& out);

// The catalog's chip that is called as the device calls itself ("NVIDIA H100 80GB HBM3": h100-80gb-hbm3), or
// what the device says: no peaks, which are measured then.
Accelerator cuda_reference(const cuda::DeviceFacts& facts, const Catalog& catalog);

}  // namespace moebius
