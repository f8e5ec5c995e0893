// CPU time of the calling thread: what others do on the machine does not count, nor does waiting.
#pragma once

#include <ctime>

#include "hw/units.h"

namespace moebius {

inline Time thread_cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return {static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec};
}

}  // namespace moebius
