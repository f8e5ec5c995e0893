// The machine that executors make of one device: its ranks are virtual, side by side on a GPU or in turns on
// a core of the host. What simulates it is what was measured on the device: its profile.
#pragma once

#include <string>
#include <vector>

#include "hw/cluster.h"
#include "hw/profile.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// The catalog id in profiles of a host (one core of it).
inline constexpr std::string_view kHostAccelerator = "host";

struct VirtualMachine {
  Cluster cluster;
  std::vector<std::int32_t> device_of_rank;
  std::string description;  // a sentence for reports
};

// - On a GPU all ranks share one chip: whoever computes holds all of it, and the exchange of all of them
//   passes one wire.
// - On the host every rank has a core of its own (the executor lets ranks run one at a time and counts their
//   CPU time), and members copy side by side. The host keeps all numbers in 32 bits.
// input_error, naming `file`: a profile without "device", without the exchange between ranks, or of another
// kind of device than the executor ("host", "cuda") runs on.
VirtualMachine virtual_machine(const Profile& profile, const std::string& file, std::string_view executor,
                               int ranks);

// `layout` with its ranks on the machine's devices.
Layout placed_on(const VirtualMachine& machine, const Layout& layout);

}  // namespace moebius
