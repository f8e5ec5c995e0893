// The host as a device that calibration measures: one core of it, as one rank has.
#pragma once

#include <string>

#include "workloads/calibration/device/device_under_test.h"

namespace moebius {

inline constexpr const char* kHostId = "host";          // of its profile's accelerator
inline constexpr const char* kHostEngine = "cpu-core";  // of its architecture

// `out`: beside this file storage is measured.
DeviceUnderTest host_under_test(const std::string& out);

}  // namespace moebius
