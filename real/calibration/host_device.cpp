#include "real/calibration/host_device.h"

#include <unistd.h>

#include <cstdlib>

#include "real/bench/host_bench.h"
#include "real/calibration/host_figures.h"
#include "real/calibration/storage_figures.h"

namespace moebius {

DeviceUnderTest host_under_test(const std::string& out) {
  DeviceUnderTest host;
  host.reference.id = kHostId;
  host.reference.architecture = kHostEngine;
  host.reference.cores = 1;
  host.reference.clock = {1e6 * std::strtod(host_clocks().c_str(), nullptr)};
  const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
  host.reference.l2 = {cache > 0 ? static_cast<double>(cache) : 0};
  host.sizes = host_case_sizes();
  host.sustained = true;
  host.bench = make_host_bench();
  OpBench& bench = *host.bench;
  const std::string directory = directory_of(out);
  host.measure_figures = [&bench, directory](double seconds) {
    return measure_host_figures(bench, directory, seconds);
  };
  host.clocks = host_clocks;
  return host;
}

}  // namespace moebius
