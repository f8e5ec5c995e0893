// What the devices of a pool cost and take, as the catalog or the scenario says.
#pragma once

#include "hw/cluster.h"
#include "workloads/serving/system/service_cost.h"

namespace moebius {

PoolTariff tariff_of(const Pool& pool);
// Of a device on average, where an instance has so many of one pool and so many of another.
PoolTariff mean_tariff(const Pool& a, int of_a, const Pool& b, int of_b);

}  // namespace moebius
