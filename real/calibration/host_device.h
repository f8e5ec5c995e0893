// The host as a device that calibration measures: one core of it, as one rank has.
#pragma once

#include <string>

#include "workloads/calibration/device/device_under_test.h"

namespace moebius {

inline constexpr const char* kHostId = "host";          // of its profile's accelerator
inline constexpr const char* kHostEngine = "cpu-core";  // of its architecture

// Every kernel in two states: hot, a quarter of L2 was read since its operands were (they stand in L2, not in
// L1); and otherwise four times L2 (they stand in the next cache, but the first, which the op before makes).
// `out`: beside this file storage is measured.
DeviceUnderTest host_under_test(const std::string& out);

}  // namespace moebius
