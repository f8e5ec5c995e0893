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

// Devices are paid for and their nodes run all the time; they take their TDP while they work. What they take
// while idle is in no catalog, and left out.
PoolCost cost_of(const ServicePoolFigures& pool, Time span) {
  const double hours = span.seconds() / 3600, devices = pool.devices, busy = std::min(1.0, pool.run.busy);
  const Instance::Totals& totals = pool.run.totals;
  const ClassTokens tokens = tokens_of(pool.run);
  PoolCost cost;
  cost.usd = devices * (pool.tariff.usd_per_hour + pool.tariff.tiers_usd_per_hour) * hours;
  cost.usd_idle = cost.usd * (1 - busy);
  const double prompts = share_of_prompts(totals, tokens);
  cost.usd_per_input_token = share(cost.usd * prompts, static_cast<double>(tokens.input));
  cost.usd_per_output_token = share(cost.usd * (1 - prompts), static_cast<double>(tokens.output));
  cost.joules = devices * span.seconds() * (pool.tariff.watts * busy + pool.tariff.overhead_watts);
  return cost;
}

}  // namespace

CostFigures cost_of(const std::vector<ServicePoolFigures>& pools,
                    const std::vector<ServiceClassFigures>& classes, Time span) {
  CostFigures all;
  all.class_usd.resize(classes.size());
  for (const ServicePoolFigures& pool : pools) {
    if (pool.tariff.usd_per_hour <= 0 && all.unknown.empty()) all.unknown = pool.tariff.accelerator;
    const PoolCost cost = cost_of(pool, span);
    all.usd += cost.usd;
    all.usd_idle += cost.usd_idle;
    all.joules += cost.joules;
    for (std::size_t i = 0; i < classes.size(); ++i)
      all.class_usd[i] += static_cast<double>(pool.run.tokens[i].input) * cost.usd_per_input_token +
                          static_cast<double>(pool.run.tokens[i].output) * cost.usd_per_output_token;
    all.pools.push_back(cost);
  }
  for (const ServiceClassFigures& of : classes) {
    all.input += of.run.input;
    all.output += of.run.output;
  }
  return all;
}

}  // namespace moebius
