// What crosses which wires of the fabric, link by link, trunks that never bind included: for reports.
#pragma once

#include <vector>

#include "sim/traffic/sites.h"
#include "sim/traffic/traffic.h"
#include "workloads/report/collective_choice.h"

namespace moebius {

// Of steps one after the other, by kind in the order of WireKind. What goes to a switch counts on the wires
// of the members alone.
std::vector<WireUse> wire_uses(const std::vector<Traffic>& steps, const GroupSites& group,
                               const Fabric& fabric);

}  // namespace moebius
