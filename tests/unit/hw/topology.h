// A fabric drawn out: every NIC, switch and link of it, at sizes where that is small. What Fabric answers by
// arithmetic can be read off this graph.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/fabric/fabric.h"

namespace moebius {

enum class VertexKind : std::uint8_t { kNic, kLeaf, kSpine, kCore, kBorder };

// index: of a NIC, the first device that it serves; of a leaf, with its twins: leaf * nic_ports + twin; of a
// spine: pod * leaf_uplinks + uplink; of a core: (plane of a region * leaf_uplinks + uplink) * spine_uplinks
// + the spine's uplink; of a border switch, its region.
struct Vertex {
  VertexKind kind = VertexKind::kNic;
  int index = 0;
  int pod = 0;  // of NICs, leaves and spines
  int region = 0;
};

struct Cable {
  int a = 0, b = 0;  // vertices
  ByteRate rate;     // achieved, each direction
};

struct Topology {
  std::vector<Vertex> vertices;
  std::vector<Cable> cables;
  std::vector<int> nic_of_device;  // the vertex of its NIC
};

// Leaves and all above them that can be reached from a NIC.
Topology topology_of(const Fabric& fabric);

// Of a shortest way between the NICs of two devices: the switches on it, and how many such ways there are;
// no ways where none leads.
struct ShortestWays {
  int switches = 0;
  std::int64_t ways = 0;
};
ShortestWays shortest_ways(const Topology& topology, int from_device, int to_device);

// The most that the NICs of nodes [0, split) send to the others at once (max-flow).
ByteRate max_flow(const Fabric& fabric, const Topology& topology, int split);

}  // namespace moebius
