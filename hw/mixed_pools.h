// Clusters of several kinds of pools: which pools are alike, and how messages between unlike ones travel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/cluster.h"

namespace moebius {

// How messages between the nodes of two pools travel: from device to device by their NICs (RDMA), or through
// host memory at both ends (CPU forwarding): see hw/fabric/fabric_host.cpp.
enum class Forwarding : std::uint8_t { kRdma, kCpu };
std::string_view to_string(Forwarding forwarding);  // "cpu"

struct ForwardingRules {
  Forwarding between_vendors = Forwarding::kCpu;  // accelerators of one vendor: RDMA
  struct Pair {
    int first = 0, second = 0;  // pools, in any order; may be the same
    Forwarding forwarding = Forwarding::kRdma;
  };
  std::vector<Pair> pairs;  // exceptions from that
};

// As FabricSpec::by_host.
std::vector<std::pair<int, int>> pairs_by_host(const std::vector<Pool>& pools, const ForwardingRules& rules);

// One line for each pair of pools whose nodes may meet: "a - b: through host memory, ...".
std::string forwarding_text(const Cluster& cluster);

// Nodes of one kind, whatever the pools are called and wherever they stand.
bool alike(const Pool& a, const Pool& b);
bool several_kinds(const Cluster& cluster);

}  // namespace moebius
