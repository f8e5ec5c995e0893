// SimGrid as driver: its engine owns the clock that the machine follows as one of its resource models, and,
// for the native network, its own communications run on a zone whose routes the fabric computes. One engine
// at a time in a process.
//
// What includes SimGrid stands in sim/simgrid/, a module beside the program that is loaded when a run asks
// for it: SimGrid brings thirty libraries, which cost every start 25 ms of CPU (2026-11-27).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hw/cluster.h"
#include "sim/machine_driver.h"
#include "sim/network/network.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// Messages that the native network carries at a time, and devices that it connects: SimGrid's time for a
// message grows with the number under way.
inline constexpr int kMostNativeMessages = 4096;
inline constexpr int kMostNativeDevices = 2048;

struct SimGridNeeds {
  const Cluster& cluster;
  const Layout& layout;
  bool native = false;     // with SimGrid's own network
  std::uint64_t seed = 0;  // of the hash that picks paths
};

struct SimGridParts {
  std::unique_ptr<Network> network;  // native only, else null
  std::unique_ptr<MachineDriver> driver;
};

// Throws run_error when this build has no SimGrid, when its module is not beside the program, when an engine
// exists already, or when the layout is too large for the native network.
SimGridParts make_simgrid_parts(const SimGridNeeds& needs);

std::string simgrid_version();  // "3.32.0", that of the build; empty without SimGrid

}  // namespace moebius
