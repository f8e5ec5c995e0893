// How fast the storage below a directory reads and writes, one request at a time.
#pragma once

#include <string>
#include <vector>

#include "hw/device_figures.h"

namespace moebius {

// kStorageRead and kStorageWrite, of 4 KiB to 4 MiB at random places of a file of 64 MiB that has no name and
// goes with the call; past the system's cache (O_DIRECT). Empty where the file system has no such access
// (what is in the cache says nothing of the storage), no room, or nothing may be written.
std::vector<TransferCurve> measure_storage(const std::string& directory, double seconds);

// Where a file stands: "." for a name alone.
std::string directory_of(const std::string& file);

}  // namespace moebius
