// Collective algorithms as traffic. Rings and trees use every rail of a node: with k members in each node, k
// of them run side by side and carry a k-th of the bytes each, so that a member sends a k-th of its bytes
// over its own NIC and the rest to its neighbour in the node.
#pragma once

#include <vector>

#include "models/op_kind.h"
#include "sim/traffic/sites.h"
#include "sim/traffic/traffic.h"
#include "workloads/routing/routing.h"
#include "workloads/schedule/op.h"

namespace moebius {

struct CollectiveQuery {
  OpKind kind = OpKind::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;  // not kAuto
  double bytes = 0;                        // Op::payload
  // Broadcast down a pipeline: chunks that the buffer is cut into.
  int chunks = 1;
  // Direct exchange: only what enters or leaves the first nodes in which a class has members, enough where
  // nothing but the members' own wires can be a bottleneck and the members of a class are alike.
  bool only_first_nodes = false;
};

// The algorithms that exist for a kind and make sense for the group: what Algorithm::kAuto chooses from.
// Direct exchange is left to groups inside one node: between nodes a message costs its sender time of its
// own, which a latency and a rate do not show, and which makes n - 1 small messages slower than they say.
std::vector<Algorithm> automatic_choices(OpKind kind, const GroupSites& group);

// The steps of the algorithm, one after the other; none for a group of one. Hierarchical algorithms need
// several nodes with equally many members, more than one, in each, and are rings elsewhere. Throws
// input_error when the kind has no such algorithm.
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
