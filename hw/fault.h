// Failures that happen while a run goes on, and how fast a platform reacts to them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/fabric/path_health.h"
#include "hw/units.h"

namespace moebius {

enum class FaultKind : std::uint8_t { kLinkDown, kLinkDegraded, kLinkFlap, kNicDown, kSwitchDown, kSlowNode };
std::string_view to_string(FaultKind kind);  // "link-down"

struct Fault {
  FaultKind kind = FaultKind::kLinkDown;
  Time at;
  PartHealth part;         // whose capacity it leaves; not of a slow node
  std::int32_t node = -1;  // of a slow node
  double speed = 1;        // of a slow node's chips: share of their own
  Time lasts = kForever;   // each time
  Time every = {};         // flap: from one time to the next
  std::int32_t times = 1;  // flap
};

// Where it happens: "leaf 0 uplink 3", "NIC of device 5", "node 2".
std::string place_of(const Fault& fault);

// What the communication library and the control plane do when something in the network breaks. Defaults are
// the orders of magnitude that Baidu publishes for its platform: failover inside a collective "ms-level",
// detection by ping mesh "second-level", mitigation "minute-level" (Baige 4.0).
struct Failover {
  Time in_collective{2'000'000};  // from when two NICs miss each other's packets until they take other ways
  Time detect{1'000'000'000};     // from the failure until the platform knows of it
  Time mitigate{60'000'000'000};  // from the failure until all routes avoid what is broken
};

struct FaultPlan {
  std::vector<Fault> faults;
  Failover failover;
  bool empty() const { return faults.empty(); }
  bool in_network() const;  // any of them
};

}  // namespace moebius
