// How fast the storage below a directory reads and writes, as a profile keeps it.
#pragma once

#include <string>

#include "hw/device_figures.h"
#include "workloads/calibration/device/figures_time.h"

namespace moebius {

// Adds the curves of kv::measure_storage. None where the file system has no access past the system's cache
// (what is in the cache says nothing of the storage), no room, or nothing may be written; where the time is
// spent before they are complete, the figures say that they were left out.
void measure_storage(const std::string& directory, const FiguresTime& time, DeviceFigures& figures);

// Where a file stands: "." for a name alone.
std::string directory_of(const std::string& file);

}  // namespace moebius
