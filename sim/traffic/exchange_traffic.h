// Communication between virtual ranks as traffic: what a member copies is an edge to itself, over its
// device's wire for copies.
#pragma once

#include <vector>

#include "hw/cluster.h"
#include "sim/traffic/traffic.h"
#include "workloads/routing/routing.h"
#include "workloads/schedule/layout.h"
#include "workloads/schedule/op.h"

namespace moebius {

// One step for each round of exchange_rounds() (workloads/schedule/local_exchange.h).
std::vector<Traffic> exchange_traffic(const Op& op, const Route* route, const Group& group,
                                      const LocalExchange& exchange);

}  // namespace moebius
