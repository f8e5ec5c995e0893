// How long one collective takes NCCL between nodes, the network to itself. Inside a node data goes along a
// chain (or through the switch that reduces), between nodes a proxy thread on the host posts it to the NICs,
// chunk by chunk. A call takes a launch, the latency of every step, the time that its first chunks need
// through the whole chain, and its bytes at the rate of the narrowest wire. That last part the caller knows:
// it is what the structure of the algorithm takes on the wires of the network (sim/traffic/collectives/).
// Pure functions. Constants: those of the chip's links (collective_constants.h), and NCCL's own
// (src/graph/tuning.cc, src/enqueue.cc, src/include/device.h; version 2.28).
#pragma once

#include <vector>

#include "hw/fabric/library_settings.h"
#include "workloads/cost/collective_model.h"
#include "workloads/schedule/op.h"

namespace moebius {

// Between which nodes. SI units.
struct NodesPlace {
  int nodes = 2;
  int per_node = 1;     // members in each node, at most
  int nics = 1;         // that the members of a node use
  double nic_rate = 0;  // of one of them, bytes a second and direction
  double message = 0;   // one message from node to node, mean over the nodes in order: the fabric's latency
  double farthest = 0;  // the same, the largest
  int proxies = 1;      // threads on the host that post for the members of a node: one for each NIC in use
  int per_host = 1;     // members in a node that stand on one board, at most: they share a host
  LibrarySettings settings = {};
};

struct NodesCall {
  LinkConstants link;
  NodesPlace place;
  CollectiveCall call;  // also kBroadcast; at least two nodes
};

// All-reduce: ring, tree and, where the node's switch reduces, in-switch (NCCL's NVLSTree). All-gather,
// reduce-scatter, broadcast: ring. All-to-all is sends and receives: rail-local (PXN) or direct.
std::vector<Algorithm> nccl_algorithms(const NodesCall& call);
// The protocols that the library has for the algorithm and the network allows.
std::vector<Protocol> nccl_protocols(const NodesCall& call, Algorithm algorithm);

// What NCCL's tuner takes the call for, in seconds: latency of its steps + bytes / rate. All-to-all: LL up to
// 32 KiB to each, Simple beyond; the seconds are 0 or 1.
double nccl_estimate(const NodesCall& call, Algorithm algorithm, Protocol protocol);
// The least of these.
Protocol nccl_protocol(const NodesCall& call, Algorithm algorithm);

// Bytes on the wires for each byte of data: LL 2, LL128 128/120, Simple 1.
double protocol_overhead(Protocol protocol);
// Messages between nodes for each that the algorithm sends: 128 KiB (NCCL_P2P_NET_CHUNKSIZE) in one.
double messages_of_send(double bytes, Protocol protocol);

// A channel keeps 8 chunks under way between two nodes (NCCL_STEPS parts of its buffer): the place of one is
// free again a message and its acknowledgement later. So what a hop carries beyond the first 8 waits a round
// trip for every 8 more; nothing in a building, most of the time across a region. s, at least, for the bytes
// of a call; 0 for all-to-all, whose channels are shared by peers.
double window_seconds(const NodesCall& call, Algorithm algorithm, Protocol protocol);

// Of a send from node to node: the bytes of data that go in one message (addP2pToPlan()).
// Simple: 128 KiB (NCCL_P2P_NET_CHUNKSIZE), half of it below 1 MiB, a quarter below 128 KiB; LL: 16 KiB.
double send_chunk(double bytes, Protocol protocol);

// All-to-all: what the host takes to post a call's messages, s, at least; 0 for other calls. One thread posts
// all of a NIC, one after the other, so that many small ones leave at its rate. A message is a send, a
// receive and, of Simple, a flush, each as long as NCCL's tuner takes one (getNetOverhead; of Simple it
// counts three). PXN brings the messages of a host's members to one NIC: their receives and flushes are
// posted together, up to eight (NCCL_PROXY_MAX_SUBS). Without it, by Algorithm::kDirect and over PCIe, each
// has its own.
// The rounds that a member's sends make where they are more than eight for each channel
// (NCCL_MAX_DEV_WORK_P2P_PER_BATCH) are shorter than what these messages take to be posted.
double posting_seconds(const NodesCall& call, Algorithm algorithm, Protocol protocol);

// Devices that share host bridges: what a call sends goes on through those of its node, at no more than what
// the library reaches between as many devices of one node (collective_model.h). s, at least; 0 where each has
// a port of its own.
double host_bridge_seconds(const NodesCall& call);

// Whether the library has a sum for the call that the switches of a network carry out, where these can
// (CollNet; NVLS in nodes of several members): of all-reduce and reduce-scatter.
bool may_sum_in_network(const NodesCall& call);

// Seconds of that from launch to end: up to the highest switch and down once, whatever the number of nodes.
double network_sum_seconds(const NodesCall& call, double data);

// Seconds from launch to end; `data`: what the wires take for the bytes of the protocol, s. Sends of an
// all-to-all also copy their first chunk before its message leaves, receives the last after it came.
double nodes_seconds(const NodesCall& call, Algorithm algorithm, Protocol protocol, double data);

}  // namespace moebius
