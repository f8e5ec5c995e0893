// How fast the storage below a directory reads and writes, as a profile keeps it.
#pragma once

#include <string>
#include <vector>

#include "hw/device_figures.h"
#include "workloads/calibration/device/figures_time.h"

namespace moebius {

// The curves of kv::measure_storage. Empty where the file system has no access past the system's cache (what
// is in the cache says nothing of the storage), no room, or nothing may be written.
std::vector<TransferCurve> measure_storage(const std::string& directory, const FiguresTime& time);

// Where a file stands: "." for a name alone.
std::string directory_of(const std::string& file);

}  // namespace moebius
