// Who sends how much to whom in one step of a communication, before anything is known of wires.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace moebius {

// Ends of an edge that are no members: the switch of the member's node, which reduces or multiplies what
// passes, and the switches of the network between nodes.
inline constexpr std::int32_t kNodeSwitch = -1, kNetworkSwitch = -2;

struct Edge {
  std::int32_t from = 0, to = 0;  // members of the group; one of them may be a switch
  double bytes = 0;
  // That the sending NIC posts for it, where it leaves the node: below one where it travels with others.
  double messages = 0;
};

// Each of these members to every other: so many edges that they are counted, not listed.
struct Mesh {
  std::vector<std::int32_t> members;
  double bytes = 0;              // of each edge
  std::vector<double> messages;  // by member: of each of its edges; see Edge
};

struct Traffic {
  std::vector<Edge> edges;
  double latency = 0;     // s; of a pipeline: of all its hops
  bool lockstep = false;  // the edges form a pipeline: all of equal bytes have one rate, that of the slowest
  double most_rate = 0;   // bytes per second that one edge uses at most (protocol, channels); 0: no limit
  double least_seconds = 0;  // that the bytes take, however free the wires: cores that copy them; 0: no limit
  double memory_bytes = 0;   // of device memory that the busiest member reads and writes for it
  double held = 0;           // s, from its beginning, that it holds every core of its members' chips
  // Messages for another rail climb to the spine, where there is one, instead of changing rail in a node.
  bool climbs = false;
  // Hops of a pipeline that passes the buffer on in chunks, as many as make it fastest; 0: no pipeline.
  int hops = 0;
  std::vector<Mesh> meshes = {};  // beside the edges; never in lockstep
  double rounds = 1;              // messages that an edge's bytes are, one after the other
  double depth = 1;               // edges that a message takes one after the other, where it is no round
  // Every rank of the sender's class sends one like it; else this is all that the group sends.
  bool own_message = false;
  bool empty() const { return edges.empty() && meshes.empty(); }
};

// The same with the edges of its meshes one by one.
Traffic listed(const Traffic& traffic);

}  // namespace moebius
