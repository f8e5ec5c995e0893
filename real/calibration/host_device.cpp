#include "real/calibration/host_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "real/bench/host_bench.h"
#include "real/calibration/host_figures.h"
#include "real/calibration/storage_figures.h"

namespace moebius {

namespace {

constexpr double kAssumedL2 = 1 << 20;  // where the system does not say
constexpr double kMostWalked = 64 << 20;

double l2_bytes() {
  const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return cache > 0 ? static_cast<double>(cache) : kAssumedL2;
}

}  // namespace

DeviceUnderTest host_under_test(const std::string& out) {
  DeviceUnderTest host;
  host.reference.id = kHostId;
  host.reference.architecture = kHostEngine;
  host.reference.cores = 1;
  host.reference.clock = {1e6 * std::strtod(host_clocks().c_str(), nullptr)};
  host.reference.l2 = {l2_bytes()};
  host.sizes = host_case_sizes();
  host.sustained = true;
  const HostWalks walks{static_cast<std::size_t>(l2_bytes() / 4),
                        static_cast<std::size_t>(std::min(4 * l2_bytes(), kMostWalked))};
  host.bench = make_walking_bench(walks.hot, walks.cold);
  OpBench& bench = *host.bench;
  const std::string directory = directory_of(out);
  host.measure_figures = [&bench, directory, walks](const FiguresTime& time) {
    return measure_host_figures(bench, directory, time, walks);
  };
  host.clocks = host_clocks;
  return host;
}

}  // namespace moebius
