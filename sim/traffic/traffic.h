// Who sends how much to whom in one step of a communication, before anything is known of wires.
#pragma once

#include <cstdint>
#include <vector>

namespace moebius {

struct Edge {
  std::int32_t from = 0, to = 0;  // members of the group
  double bytes = 0;
};

// Each of these members to every other: so many edges that they are counted, not listed.
struct Mesh {
  std::vector<std::int32_t> members;
  double bytes = 0;
};

struct Traffic {
  std::vector<Edge> edges;
  double latency = 0;      // s
  bool lockstep = false;   // the edges form a pipeline: all of equal bytes have one rate, that of the slowest
  double most_rate = 0;    // bytes per second that one edge uses at most (protocol, channels); 0: no limit
  std::uint8_t queue = 0;  // see FlowClass::queue
  std::vector<Mesh> meshes = {};  // beside the edges; never in lockstep
  bool empty() const { return edges.empty() && meshes.empty(); }
};

}  // namespace moebius
