#include "workloads/report/step_price.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/report/number_text.h"
#include "workloads/report/report_figures.h"

namespace moebius {

StepTariff step_tariff(const Cluster& cluster, int ranks, const IdleWatts& idle_watts) {
  StepTariff tariff;
  std::size_t index = 0;
  for (const Pool& pool : cluster.pools) {
    const std::optional<double> idle = idle_watts.of(index++);
    const int used = std::min(ranks, pool.devices()), node = std::max(1, pool.node.accelerators);
    ranks -= used;
    if (used == 0) continue;
    const Accelerator& chip = pool.accelerator;
    if (chip.price.value <= 0 && tariff.no_price.empty()) tariff.no_price = chip.id;
    if (chip.power.value <= 0 && tariff.no_power.empty()) tariff.no_power = chip.id;
    tariff.usd_per_hour += used * chip.price.value;
    if (idle)
      tariff.idle_watts += used * *idle;
    else
      tariff.device_watts += used * chip.power.value;
    tariff.node_watts += (used + node - 1) / node * pool.node.overhead_power.value;
  }
  return tariff;
}

StepPrice step_price(const Report& report) {
  const TrainingFigures training = training_figures(report);
  StepPrice cost{
      step_tariff(*report.scenario->cluster, training.devices, report.facts.idle_watts), 0, {}, {}};
  double seconds = training.step_time_s;
  cost.tokens = training.tokens_per_s * seconds;
  if (report.reinforcement)
    seconds = report.reinforcement->step_time_s(), cost.tokens = report.reinforcement->tokens;
  if (!report.facts.on_cluster) return cost;
  if (cost.tariff.no_price.empty()) cost.usd = cost.tariff.usd(seconds);
  // How busy devices are in a rollout no breakdown says.
  if (!cost.tariff.no_power.empty() || report.reinforcement) return cost;
  const TimeFigures time = time_figures(report);
  cost.joules = cost.tariff.joules(seconds, time.compute + time.exposed,
                                   report.metrics.joules() / report.scenario->training.num_steps());
  return cost;
}

std::string energy_text(double joules, std::string_view of, bool by_tdp) {
  return fmt::format("  energy             {:.3g} {}: an estimate, {}, and what nodes take\n", joules, of,
                     by_tdp ? "TDP while busy" : "what work and idle boards draw");
}

namespace {

struct BatchPrice {
  StepTariff tariff;
  bool known = false;
  double usd = 0, tokens = 0, input_tokens = 0, output_tokens = 0;
  std::optional<double> joules = {};
};

BatchPrice batch_price(const Report& report) {
  const ServingFigures& figures = *report.serving;
  const double seconds = report.metrics.makespan.seconds();
  BatchPrice price{.tariff = step_tariff(*report.scenario->cluster, static_cast<int>(report.devices()),
                                         report.facts.idle_watts)};
  price.known = report.facts.on_cluster && price.tariff.no_price.empty();
  price.usd = price.tariff.usd(seconds);
  price.output_tokens = figures.output_tokens_per_s * seconds;
  price.input_tokens = figures.input_tokens_per_s * seconds;
  price.tokens = price.output_tokens + price.input_tokens;
  const TimeFigures time = time_figures(report);
  if (report.facts.on_cluster && price.tariff.no_power.empty())
    price.joules = price.tariff.joules(seconds, time.compute + time.exposed, report.metrics.joules());
  return price;
}

}  // namespace

FigureTree batch_cost_tree(const Report& report) {
  const BatchPrice price = batch_price(report);
  const auto per_million = [&](double usd, double tokens) {
    return figure_if(price.known && tokens > 0, tokens > 0 ? 1e6 * usd / tokens : 0);
  };
  const double prompts = price.usd * report.serving->prompt_share;
  FigureTree tree;
  tree.rows = {
      {"usd_per_hour", figure_if(price.known, price.tariff.usd_per_hour)},
      {"usd", figure_if(price.known, price.usd)},
      {"usd_per_million_tokens", per_million(price.usd, price.tokens)},
      {"usd_per_million_input_tokens", per_million(prompts, price.input_tokens)},
      {"usd_per_million_output_tokens", per_million(price.usd - prompts, price.output_tokens)},
      {"joules", figure_if(price.joules.has_value(), price.joules.value_or(0))},
      {"joules_per_output_token", figure_if(price.joules && price.output_tokens > 0,
                                            price.joules.value_or(0) / std::max(1.0, price.output_tokens))}};
  return tree;
}

std::string batch_cost_text(const Report& report) {
  const BatchPrice price = batch_price(report);
  std::string text;
  if (!price.tariff.no_price.empty())
    text =
        fmt::format("  cost               not known: no price of {} in the catalog\n", price.tariff.no_price);
  else if (price.known && price.tokens > 0)
    text = fmt::format(
        "  cost               {} USD: {} USD an hour, {} USD a million tokens (in and out)\n",
        amount_text(price.usd), amount_text(price.tariff.usd_per_hour),
        amount_text(1e6 * price.usd / price.tokens));
  if (price.joules && price.output_tokens > 0)
    text += energy_text(*price.joules / price.output_tokens, "J a token generated",
                        price.tariff.device_watts > 0);
  return text;
}

FigureTree cost_tree(const StepPrice& cost) {
  const auto known = [](const std::optional<double>& whole, double share) {
    return figure_if(whole.has_value(), whole.value_or(0) * share);
  };
  FigureTree tree;
  tree.rows = {{"usd_per_hour", figure_if(cost.usd.has_value(), cost.tariff.usd_per_hour)},
               {"usd_per_step", known(cost.usd, 1)},
               {"usd_per_million_tokens", known(cost.usd, 1e6 / cost.tokens)},
               {"joules_per_step", known(cost.joules, 1)},
               {"joules_per_token", known(cost.joules, 1 / cost.tokens)}};
  return tree;
}

std::string cost_text(const StepPrice& cost) {
  std::string text;
  if (cost.usd)
    text += fmt::format("  cost               {} USD a step, {} USD a million tokens\n",
                        amount_text(*cost.usd), amount_text(1e6 * *cost.usd / cost.tokens));
  if (!cost.tariff.no_price.empty())
    text +=
        fmt::format("  cost               not known: no price of {} in the catalog\n", cost.tariff.no_price);
  if (cost.joules) text += energy_text(*cost.joules / cost.tokens, "J a token", cost.tariff.device_watts > 0);
  return text;
}

}  // namespace moebius
