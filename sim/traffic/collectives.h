// Collective algorithms as traffic: what a communication library does with a buffer, step by step. Rings and
// trees use every rail of a node: with k members in each node, k of them run side by side and carry a k-th of
// the bytes each, so that a member sends a k-th of its bytes over its own NIC and the rest to its neighbour
// in the node. The algorithms stand in sim/traffic/collectives/, a file for each family; which of them a kind
// has, workloads/schedule/algorithms.h says.
#pragma once

#include <string>
#include <vector>

#include "models/op_kind.h"
#include "sim/traffic/sites.h"
#include "sim/traffic/traffic.h"
#include "workloads/routing/routing.h"
#include "workloads/schedule/op.h"
#include "workloads/schedule/pair_bytes.h"

namespace moebius {

struct CollectiveQuery {
  OpKind kind = OpKind::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;  // not kAuto
  double bytes = 0;                        // Op::payload
  double most_sent = 0;                    // bytes per second that one member's channels pass; 0: no limit
  const PairBytes* matrix = nullptr;       // all-to-all: who sends how much to whom; null: all alike
  bool in_network = true;  // in-switch: switches of a network that reduce do; else those of the nodes alone
};

// The algorithms that exist for a kind and make sense for the group: what Algorithm::kAuto chooses from.
// Reductions and gathers by direct exchange between nodes are for parts that are one message each, and for
// networks whose leaves and pods have enough uplinks: elsewhere it counts what rings keep below them, for
// other groups, too.
std::vector<Algorithm> automatic_choices(const CollectiveQuery& query, const GroupSites& group,
                                         const Fabric& fabric);

// Why the group cannot use the algorithm, as the end of a sentence; empty when it can.
std::string what_lacks(Algorithm algorithm, OpKind kind, const GroupSites& group, const Fabric& fabric);

// The steps of the algorithm, one after the other; none for a group of one. Hierarchical algorithms need
// several nodes with equally many members, more than one, in each, and are rings elsewhere (direct, of an
// all-to-all). Throws input_error when the kind has no such algorithm or the machines cannot do it.
std::vector<Traffic> collective_traffic(const CollectiveQuery& query, const GroupSites& group,
                                        const Fabric& fabric);

// Mean latency from one member of the ring to the next.
double ring_hop_latency(const GroupSites& group, const Fabric& fabric);

// Tokens to their experts (dispatch), or their results back (combine, the same edges reversed): once to each
// node that holds an expert of the token, to the member of the same index in the node, which hands it on to
// the members that do.
Traffic route_traffic(const Route& route, bool combine, double row_bytes, const GroupSites& group,
                      const Fabric& fabric);

// The one message from member `from` to member `to`.
Traffic message_traffic(int from, int to, double bytes, const GroupSites& group, const Fabric& fabric);

}  // namespace moebius
