// NCCL's own tables of channels and steps between nodes, and its tuner (2.28: src/graph/tuning.cc,
// connect.cc).
#pragma once

#include "workloads/cost/nodes_model.h"

namespace moebius {

// How many channels a call may use: two for each NIC of a node; from Hopper on, four for each fast one while
// they are fewer than 16.
int nccl_channels(const NodesCall& call);

// Bytes per second that one channel of a tree passes up and down together, by the tuner.
double tree_channel_rate(const NodesCall& call, Protocol protocol);

// Of one message between nodes, beside the network's own latency: device to proxy thread, posting,
// completion, proxy to device. s.
double proxy_latency(Protocol protocol);
// Of that the host's own part: one call to post to the NIC or to complete (getNetOverhead), s.
double post_latency(const NodesCall& call);
// The same of a message that the switches of the network sum up; in_nodes: after those of the nodes.
double network_sum_latency(bool in_nodes);

// Whether the switches of the nodes reduce for the call: set up for whole boards of eight.
bool uses_node_switches(const NodesCall& call);

}  // namespace moebius
