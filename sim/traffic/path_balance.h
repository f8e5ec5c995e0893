// What adaptive switches settle on in a network that is not alike everywhere: the shares in which traffic
// between two leaves goes over its paths, such that no port could be relieved by moving some of it.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "sim/traffic/flow_paths.h"
#include "sim/traffic/sites.h"
#include "sim/traffic/traffic.h"

namespace moebius {

// By pair of leaves (sender's, receiver's). Each pair in turn is poured over its paths up to one level of
// bytes over capacity, on top of what the others put there, until nothing moves any more (within 0.1 %) or 50
// turns are over.
std::map<std::pair<int, int>, PathShares> levelled_shares(const Traffic& traffic, const GroupSites& group,
                                                          const Fabric& fabric, FlowPaths& paths);

// The same of messages between gates.
struct GateLoad {
  Fabric::Gates gates;
  double bytes = 0;
};
std::map<std::pair<int, int>, PathShares> levelled_shares(const std::vector<GateLoad>& loads,
                                                          const Fabric& fabric, FlowPaths& paths);

}  // namespace moebius
