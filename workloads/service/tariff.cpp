#include "workloads/service/tariff.h"

namespace moebius {

PoolTariff tariff_of(const Pool& pool, std::optional<double> idle_watts) {
  const Accelerator& chip = pool.accelerator;
  PoolTariff tariff;
  tariff.accelerator = chip.id;
  tariff.usd_per_hour = chip.price.value;
  tariff.watts = chip.power.value;
  tariff.idle_watts = idle_watts;
  tariff.overhead_watts = pool.node.overhead_power.value / pool.node.accelerators;
  for (const Fact& fact : chip.facts) {
    if (fact.name == "price") tariff.source = fact.source, tariff.status = fact.status;
  }
  return tariff;
}

PoolTariff mean_tariff(const PoolTariff& a, int of_a, const PoolTariff& other, int of_b) {
  PoolTariff mean = a;
  const double share = static_cast<double>(of_a) / (of_a + of_b);
  const auto of_both = [&](double first, double second) { return share * first + (1 - share) * second; };
  if (other.accelerator != mean.accelerator) {
    mean.accelerator += " and " + other.accelerator;
    if (!other.source.empty()) mean.source += "; " + other.source;
  }
  const bool known = mean.usd_per_hour > 0 && other.usd_per_hour > 0;
  mean.usd_per_hour = known ? of_both(mean.usd_per_hour, other.usd_per_hour) : 0;
  mean.watts = of_both(mean.watts, other.watts);
  if (mean.idle_watts && other.idle_watts)
    mean.idle_watts = of_both(*mean.idle_watts, *other.idle_watts);
  else
    mean.idle_watts.reset();
  mean.overhead_watts = of_both(mean.overhead_watts, other.overhead_watts);
  return mean;
}

}  // namespace moebius
