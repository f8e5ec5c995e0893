// The families of algorithms. Each function gives the steps of one, for the kinds that
// workloads/schedule/algorithms.h lists for it and for groups of at least two.
#pragma once

#include <vector>

#include "sim/traffic/collectives.h"

namespace moebius {

using Steps = std::vector<Traffic>;

// Neighbour to neighbour. Reductions and gathers: n - 1 steps of an n-th of the buffer each, twice that for
// an all-reduce. Broadcast: a pipeline of chunks from the root to the last member. All-to-all: n - 1 rounds,
// in round s to the member s places on.
Steps ring_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric);

// All-reduce: chunks up and down two binary trees that carry half each; a member that passes on in one is a
// leaf of the other (Sanders, Speck, Traff: Two-tree algorithms for full bandwidth broadcast, reduction and
// scan, 2009). Broadcast: chunks down one tree.
Steps tree_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric);

// Every member to every other, all at once, over its own NIC. All-reduce: everyone's share of the sum, then
// the sum of everyone's share.
Steps direct_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric);

// The step in which each member of the mesh sends to every other, all on devices of their own.
Traffic mesh_traffic(Mesh mesh, const GroupSites& group, const Fabric& fabric, RailChange change);
double mean_mesh_latency(const Mesh& mesh, const GroupSites& group, const Fabric& fabric);

// All-to-all: messages for a member of another node go over the scale-up link to the device of its rail in
// the sending node, which sends them in one message with those of its neighbours: no message climbs to the
// spine to change rail, and there are fewer and larger ones. Both parts run at once, chunk by chunk.
Steps rail_local_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric);

// Inside the nodes, then between them on every rail, then (all-reduce) inside again; all-gather the other way
// round. All-to-all: first to the member of the destination's index in the node, then between nodes.
Steps hierarchical_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric);

// Inside a node the switch reduces what it is asked for and sends a store to all: for an all-reduce each of n
// members gives S and an n-th of the sum to the switch and takes an n-th and S from it: (n + 1)/n S/B.
// Between nodes, member c with members c of the others: in the network's switches where they reduce, S/B of
// what is left after the node, and a ring where they do not.
Steps in_switch_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric);

// One step of rings inside every node, side by side; and along every rail, in `hops` steps of an N-th each.
Traffic rings_in_nodes(double bytes, const GroupSites& group, const Fabric& fabric);
Traffic rings_between_nodes(double bytes, bool twice, const GroupSites& group, const Fabric& fabric);

}  // namespace moebius
