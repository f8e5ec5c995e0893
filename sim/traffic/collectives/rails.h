// A group as k parallel rings or trees over stops, and how long an edge waits: what the families share.
#pragma once

#include <vector>

#include "sim/traffic/sites.h"
#include "sim/traffic/traffic.h"

namespace moebius {

// Every ring passes all members of a stop; ring c enters and leaves it by stops[j][c].
struct Rails {
  std::vector<std::vector<std::int32_t>> stops;
  int k = 1;

  int size() const { return static_cast<int>(stops.size()); }
  int members() const;
  int most_at_a_stop() const;
};

// Nodes are the stops, with as many rings as the smallest of them has members: a node with more of them
// leaves NICs idle, as NCCL does, whose channels are as many in every node. In one node every member is a
// stop.
Rails rails_of(const GroupSites& group);
// The stop of the root first, as broadcasts begin there.
void start_at_root(Rails& rails);
// Several nodes, equally many members in each, and more than one.
bool has_hierarchy(const GroupSites& group);

// Inside a stop, around: what the k rings pass through the member that the most of them pass. With a member
// for each ring, a ring leaves out the link into the one where it enters.
void add_inside_edges(const Rails& rails, double bytes, std::vector<Edge>& edges);
// The edges of a ring that passes `bytes` over each hop. Open: without the hop that closes it.
std::vector<Edge> ring_edges(const Rails& rails, double bytes, bool closed);

// Of edges between members, in seconds.
double largest_latency(const std::vector<Edge>& edges, const GroupSites& group, const Fabric& fabric,
                       RailChange change = RailChange::kInNode);
// A message waits at each hop for that hop's own latency; averaged by how often the rings take it.
double mean_latency(const std::vector<Edge>& edges, const GroupSites& group, const Fabric& fabric);

}  // namespace moebius
