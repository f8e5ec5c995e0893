// What `moebius calibrate --device` measured of a drive, as a catalog: the DIR/storage.json of `--data DIR`,
// so that tiers of a KV cache are simulated on the drive at hand.
#pragma once

#include <string>

#include "hw/device_figures.h"
#include "hw/units.h"

namespace moebius {

inline constexpr std::string_view kMeasuredDrive = "measured";  // the entry's name

// One entry: rates and operations a second at the best depth, latencies at depth 1. Throws run_error when
// reads or writes were not measured (a file system that does not read past its cache).
std::string drive_catalog(const DeviceFigures& figures, Bytes capacity);

// Writes it for the drive that holds `measured_at`, a file or folder, whose file system's size is its
// capacity.
void save_drive_catalog(const std::string& file, const DeviceFigures& figures,
                        const std::string& measured_at);

}  // namespace moebius
