// Who sends how much to whom in one step of a communication, before anything is known of wires.
#pragma once

#include <cstdint>
#include <vector>

namespace moebius {

struct Edge {
  std::int32_t from = 0, to = 0;  // members of the group
  double bytes = 0;
};

struct Traffic {
  std::vector<Edge> edges;
  double latency = 0;      // s
  bool lockstep = false;   // the edges form a pipeline: all of equal bytes have one rate, that of the slowest
  double most_rate = 0;    // bytes per second that one edge uses at most (protocol, channels); 0: no limit
  double least_seconds = 0;  // that the bytes take, however free the wires: cores that copy them; 0: no limit
};

}  // namespace moebius
