// What the devices of a pool cost and take, as the catalog or the scenario says.
#pragma once

#include "hw/cluster.h"
#include "workloads/serving/system/service_cost.h"

namespace moebius {

PoolTariff tariff_of(const Pool& pool);

}  // namespace moebius
