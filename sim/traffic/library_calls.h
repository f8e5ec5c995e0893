// Collectives of one scale-up domain as the chip's library carries them out: its launch, steps and protocol
// (workloads/cost/collective_model.h) put on the wires that the ring or the messages cross, so that on an
// idle node a call takes what the model says, and beside others what the wires leave it.
#pragma once

#include <optional>

#include "hw/cluster.h"
#include "sim/traffic/sites.h"
#include "sim/traffic/traffic.h"
#include "workloads/cost/collective_model.h"
#include "workloads/schedule/op.h"

namespace moebius {

// The chip's constants for the nodes that the group stands in: what messages there take longer than where
// they were measured, and no algorithm in the switch where the link cannot reduce or the group leaves a
// board.
std::optional<LinkConstants> links_of(const GroupSites& group, const Cluster& cluster);

// Direct links from device to device: rings take them all.
bool stands_in_full_mesh(const GroupSites& group, const Cluster& cluster);

// More than 16 members on several boards of a node, of a chip whose constants are another's: nothing measured
// says what its library does with them.
bool is_unlike_measured(const LinkConstants& link, const GroupSites& group, const Fabric& fabric);

struct LibraryCall {
  Traffic traffic;     // one step without latency: who sends what, at which rate at most
  double sent = 0;     // bytes that each member sends
  double rate = 0;     // at which it does, at most, bytes per second
  double seconds = 0;  // from launch to end on an idle node
  int cores = 0;       // that each member's kernel holds
};

// Empty for groups that leave their node (nodes_plans.h) and where the structure alone decides: operations
// without a model, chips without constants, and is_unlike_measured(). Named: by the library's ring, by its
// switches that reduce, or its messages to each; empty for what it has not in a node.
std::optional<LibraryCall> library_call(const CollectiveCall& call, const GroupSites& group,
                                        const Cluster& cluster, Algorithm named = Algorithm::kAuto);

// From the launch of the library's kernel to its first byte, for calls whose steps the structure of the links
// tells; 0 for chips without constants.
double library_start(const CollectiveCall& call, const Accelerator& chip, CollectiveSource source);

// By so few channels that each member sends no more a second: what its bytes take longer, the call does.
void limit_rate(LibraryCall& call, double most_rate);

}  // namespace moebius
