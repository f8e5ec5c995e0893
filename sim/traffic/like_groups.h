// Folding: a class stands for many ranks, and so for many groups of a kind (expert groups, pairs that send to
// each other), which all do what the simulated one does, at the same time. What is a device's own is folded
// with the device. Leaves, pods and the links
// between regions are shared: these carry what all those groups send. Each of the
// groups is the simulated one with a number added to its ranks, its shift.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/traffic/sites.h"

namespace moebius {

bool shared_wires_bind(const Fabric& fabric);

// The shifts of all groups in which a rank of `of` has the index that its representative has in `group`, the
// group's own (0) first. Groups whose members are neither equally spaced nor in equally spaced runs of
// neighbours stand for themselves alone.
std::vector<std::int32_t> shifts_of(const Group& group, const RankClass& of);

// Those of `shifts` whose groups use shared wires that can be a bottleneck. Where several sets of groups
// load their wires alike, and no others, one set stays. All, where nodes hold members at unlike places.
std::vector<std::int32_t> distinct_shifts(const Sites& sites, const GroupSites& group,
                                          const std::vector<std::int32_t>& shifts, RailChange change);

}  // namespace moebius
