// Collectives over islands: members on different chips, mostly with CPU forwarding between them. What crosses
// from island to island is the bottleneck, so that it crosses once, and over the hosts and NICs of all
// members.
#pragma once

#include <vector>

#include "sim/traffic/collectives.h"

namespace moebius {

// All-reduce, reduce-scatter, all-gather. In every island at once a reduce-scatter, first in its nodes and
// then along the rails between them, after which each of its n members holds an n-th; then around the
// islands, member with member as their shares overlap; then inside an all-gather. Islands may be of different
// sizes.
std::vector<Traffic> island_traffic(const CollectiveQuery& query, const GroupSites& group,
                                    const Fabric& fabric);

}  // namespace moebius
