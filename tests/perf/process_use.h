// What this process has used so far.
#pragma once

#include <sys/resource.h>

#include <ctime>

namespace moebius {

inline double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// At most until now.
inline double resident_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace moebius
