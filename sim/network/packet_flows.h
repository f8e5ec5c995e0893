// Flows under a receiver-driven transport, packet by packet: what max-min does not know. A port is a FIFO
// that is never looked at between packets: it has a time until which it is busy, an arriving packet waits for
// it, and one that finds the queue full is trimmed (or, as often, the newest one in the queue is). So each
// hop of a packet costs one addition, about a hundredth of what an event-driven simulator pays.
//
// What follows from the mechanism and is nowhere stated as a share:
//  - until it is heard (acknowledged, pulled), a flow sends its first window at line rate, whatever else is
//    under way (incast, bursts);
//  - a flow shorter than its first window asks without bound, and pulls given to complete flows are lost;
//  - receivers go on granting credit at their link's rate, so an overloaded core trims in proportion to what
//    arrives, and shares follow arrivals and not max-min;
//  - a hash spreads 64 entropies unevenly over few uplinks, and the fullest port trims (balls in bins);
//  - pulls, acknowledgements and trimmed headers take their bytes from the links of the way back and onward.
//
// Where more than 110,000 packets are sent, two to four of one flow stay together as one; measured in
// tests/cross/packet_level_test.
//
// Left out: loss of headers, timeouts, congestion control in the sender (EQDS has none by default).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hw/fabric/fabric.h"
#include "hw/fabric/packet_transport.h"

namespace moebius {

struct PacketFlow {
  int from = 0, to = 0;  // devices, different
  double bytes = 0;      // payload
  int path = -1;         // of Fabric::route_by_ports, for all packets; -1: as the fabric's routing says
  double most_rate = 0;  // bytes per second at which its packets leave at most; 0: no limit
  double messages = 0;   // that the sending NIC posts for it, where it leaves the node
  RailChange change = RailChange::kInNode;
  int nic_port = -1;  // of a NIC of several, where all packets leave and arrive by it; -1: any
};

struct PacketFlowTimes {
  std::vector<double> completion;  // s, by flow: until the sender holds the last acknowledgement
  std::int64_t packets = 0;        // distinct ones
  std::int64_t resent = 0;
};

// Packets of a large run stay together by two to four, where a flow has 64 bursts: the queue of a port then
// still holds eight or more, and completion times stay within a few per cent.
int packets_in_burst(double packets, double flows, double sends);

// All flows start at time 0. Wires run at the fabric's rates without transport_efficiency: a packet's header
// is carried as bytes here. `seed` draws the hashes.
PacketFlowTimes run_packet_flows(const Fabric& fabric, const PacketTransport& transport,
                                 std::span<const PacketFlow> flows, std::uint64_t seed);

}  // namespace moebius
