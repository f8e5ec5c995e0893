// `calibrate`: kernel profiles from published tables, or of a device at hand.
#pragma once

#include <functional>
#include <string>

#include "hw/catalog.h"
#include "workloads/calibration/device/device_under_test.h"
#include "workloads/command_line/command.h"

namespace moebius {

// The device of a name that device_name() accepts; `out`: beside this file storage is measured.
using OpenDevice =
    std::function<DeviceUnderTest(const std::string& device, const Catalog& catalog, const std::string& out)>;

Command calibrate_command(OpenDevice open);

}  // namespace moebius
