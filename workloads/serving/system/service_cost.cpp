#include "workloads/serving/system/service_cost.h"

#include <algorithm>

namespace moebius {
namespace {

ClassTokens tokens_of(const PoolFigures& run) {
  ClassTokens sum;
  for (const ClassTokens& of : run.tokens) sum.input += of.input, sum.output += of.output;
  return sum;
}

// Of what a pool costs, by the time that prompts took. A pool that only decodes may compute those of
// sequences that it drove out, and has no tokens of prompts on which that could fall: all falls on those it
// generates.
double share_of_prompts(const Instance::Totals& totals, const ClassTokens& tokens) {
  if (tokens.input == 0) return 0;
  if (tokens.output == 0) return 1;
  return share(totals.busy_with_prompts.seconds(), totals.busy.seconds());
}

// Devices are paid for and their nodes run all the time. Of those of which it is not known what they draw for
// their work, it is not known either what they draw idle.
PoolCost of_devices(int devices, double busy, const PoolTariff& tariff, double drawn, Time span) {
  const double device_seconds = devices * span.seconds();
  const double hours = span.seconds() / 3600;
  PoolCost cost;
  cost.usd = devices * (tariff.usd_per_hour + tariff.tiers_usd_per_hour) * hours;
  cost.usd_idle = cost.usd * (1 - busy);
  cost.joules = device_seconds * tariff.overhead_watts;
  cost.joules +=
      tariff.idle_watts ? drawn + device_seconds * *tariff.idle_watts : device_seconds * tariff.watts * busy;
  return cost;
}

PoolCost cost_of(const ServicePoolFigures& pool, Time span) {
  const ClassTokens tokens = tokens_of(pool.run);
  PoolCost cost =
      of_devices(pool.devices, std::min(1.0, pool.run.busy), pool.tariff, pool.drawn_joules, span);
  const double prompts = share_of_prompts(pool.run.totals, tokens);
  cost.usd_per_input_token = share(cost.usd * prompts, static_cast<double>(tokens.input));
  cost.usd_per_output_token = share(cost.usd * (1 - prompts), static_cast<double>(tokens.output));
  return cost;
}

}  // namespace

CostFigures cost_of(const std::vector<ServicePoolFigures>& pools, const EncoderDevices& encoders,
                    const std::vector<ServiceClassFigures>& classes, Time span) {
  CostFigures all;
  all.class_usd.resize(classes.size());
  const auto add = [&all](const PoolCost& cost, const PoolTariff& tariff) {
    if (tariff.usd_per_hour <= 0 && all.unknown.empty()) all.unknown = tariff.accelerator;
    all.usd += cost.usd;
    all.usd_idle += cost.usd_idle;
    all.joules += cost.joules;
  };
  for (const ServicePoolFigures& pool : pools) {
    const PoolCost cost = cost_of(pool, span);
    add(cost, pool.tariff);
    const ClassTokens tokens = tokens_of(pool.run);
    if (tokens.input + tokens.output == 0) all.usd_unused += cost.usd;
    for (std::size_t i = 0; i < classes.size(); ++i)
      all.class_usd[i] += static_cast<double>(pool.run.tokens[i].input) * cost.usd_per_input_token +
                          static_cast<double>(pool.run.tokens[i].output) * cost.usd_per_output_token;
    all.pools.push_back(cost);
  }
  for (const ServiceClassFigures& of : classes) {
    all.input += of.run.input;
    all.output += of.run.output;
  }
  if (encoders.devices > 0) {
    all.encoders = of_devices(encoders.devices, std::min(1.0, encoders.busy), encoders.tariff,
                              encoders.drawn_joules, span);
    all.encoders.usd_per_input_token = share(all.encoders.usd, static_cast<double>(all.input));
    add(all.encoders, encoders.tariff);
    for (std::size_t i = 0; i < classes.size(); ++i)
      all.class_usd[i] += static_cast<double>(classes[i].run.input) * all.encoders.usd_per_input_token;
  }
  return all;
}

}  // namespace moebius
