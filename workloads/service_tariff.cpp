#include "workloads/service_tariff.h"

namespace moebius {

PoolTariff tariff_of(const Pool& pool) {
  const Accelerator& chip = pool.accelerator;
  PoolTariff tariff;
  tariff.accelerator = chip.id;
  tariff.usd_per_hour = chip.price.value;
  tariff.watts = chip.power.value;
  tariff.overhead_watts = pool.node.overhead_power.value / pool.node.accelerators;
  for (const Fact& fact : chip.facts) {
    if (fact.name == "price") tariff.source = fact.source, tariff.status = fact.status;
  }
  return tariff;
}

}  // namespace moebius
