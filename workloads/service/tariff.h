// What the devices of a pool cost and take, as the catalog or the scenario says.
#pragma once

#include <optional>

#include "hw/cluster.h"
#include "workloads/serving/system/service_cost.h"

namespace moebius {

// `idle_watts`: see RunFacts.
PoolTariff tariff_of(const Pool& pool, std::optional<double> idle_watts);
// Of a device on average, where an instance has so many of one pool and so many of another.
PoolTariff mean_tariff(const PoolTariff& a, int of_a, const PoolTariff& b, int of_b);

}  // namespace moebius
