// What a training step, or a batch that is served, costs: its devices by the hour for as long as it takes,
// and the energy that they and their nodes take, an estimate. The report and searches tell it alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/report/report_serving.h"

namespace moebius {

// Of the devices that so many ranks stand on: the first ones of the pools, one after the other.
struct StepTariff {
  std::string no_price, no_power;  // the first chip in use whose price or TDP no catalog has; empty: none
  double usd_per_hour = 0;
  double device_watts = 0;  // TDP of those of which it is not known what their work draws ...
  double idle_watts = 0;    // ... and what the others draw idle
  double node_watts = 0;    // what their nodes take beside them: fans, CPUs, NICs

  double usd(double seconds) const { return usd_per_hour / 3600 * seconds; }
  // `drawn`: by the work of the devices of which it is known, beside what they draw idle. The others stand at
  // their TDP while they are busy; idle they count for nothing.
  double joules(double seconds, double busy_seconds, double drawn) const {
    return device_watts * busy_seconds + (idle_watts + node_watts) * seconds + drawn;
  }
};
StepTariff step_tariff(const Cluster& cluster, int ranks, const IdleWatts& idle_watts = {});

// Of one step of a training run, with a rollout and scoring where it has them. Nothing where a price or a TDP
// is not known, where others than the scenario's devices ran, and of the energy of a rollout.
struct StepPrice {
  StepTariff tariff;
  double tokens = 0;
  std::optional<double> usd, joules;
};
StepPrice step_price(const Report& report);

// Of a batch that was served op by op: its devices by the hour from the first arrival to the last token.
FigureTree batch_cost_tree(const Report& report);
std::string batch_cost_text(const Report& report);

// "  energy             0.78 J a token: an estimate, ...": `by_tdp`: of some device.
std::string energy_text(double joules, std::string_view of, bool by_tdp);

FigureTree cost_tree(const StepPrice& cost);
std::string cost_text(const StepPrice& cost);

}  // namespace moebius
