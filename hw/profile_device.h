// The object "device" of a profile: what a device was found to do beside its kernels (hw/device_figures.h).
#pragma once

#include <string>

#include "hw/device_figures.h"
#include "hw/reader.h"

namespace moebius {

// Throws as profile_from(): at most 64 transfers of 256 sizes each, ascending, and 256 interferences.
DeviceFigures read_device_figures(Reader reader);

// One JSON object, reads back as the same figures and the same text. Every line after the first is indented
// by `indent`; empty: all in one line.
std::string to_json(const DeviceFigures& figures, const std::string& indent = "");

}  // namespace moebius
