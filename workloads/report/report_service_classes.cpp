#include "workloads/report/report_service_classes.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "workloads/report/number_text.h"
#include "workloads/report/spread_tree.h"
#include "workloads/report/step_price.h"

namespace moebius {
namespace {

using Out = std::back_insert_iterator<std::string>;

double million(double usd, std::int64_t tokens) {
  return share(1e6 * usd, static_cast<double>(tokens));
}

// Over no tokens and no time there is no rate.
Figure rate(double whole, double of) {
  return figure_if(of > 0, share(whole, of));
}

Figure a_million(double usd, std::int64_t tokens) {
  return rate(1e6 * usd, static_cast<double>(tokens));
}

std::string text_if(bool exists, const std::string& text) {
  return exists ? text : "-";
}

ClassTokens tokens_of(const ServicePoolFigures& pool) {
  ClassTokens sum;
  for (const ClassTokens& of : pool.run.tokens) sum.input += of.input, sum.output += of.output;
  return sum;
}

// What a device takes is in the catalog.
bool power_known(const ServicePoolFigures& pool) {
  return pool.tariff.watts > 0;
}

std::int64_t paid_tokens(std::int64_t input, std::int64_t output, PoolRole does) {
  return (does == PoolRole::kDecode ? 0 : input) + output;
}

FigureTree class_tree(const ServiceFigures& service, std::size_t index, PoolRole does) {
  const ServiceClassFigures& of = service.classes[index];
  const auto met = static_cast<double>(of.run.met);
  const bool promised = of.goal.given();
  FigureTree tree{{{"submitted", of.run.submitted},
                   {"completed", of.run.completed},
                   {"rejected", of.run.rejected},
                   {"turned_away", of.run.turned_away},
                   {"met", promised ? Figure(of.run.met) : Figure(nullptr)},
                   {"goodput_rps", figure_if(promised, share(met, service.span.seconds()))},
                   {"slo_attainment", figure_if(promised, share(met, static_cast<double>(of.run.submitted)))},
                   {"input_tokens", of.run.input},
                   {"output_tokens", of.run.output}}};
  if (service.cost.unknown.empty()) {
    const double usd = service.cost.class_usd[index];
    tree.rows.emplace_back("usd", usd);
    tree.rows.emplace_back("usd_per_million_tokens",
                           a_million(usd, paid_tokens(of.run.input, of.run.output, does)));
  }
  const bool prompts = does != PoolRole::kDecode;
  tree.parts = {{"ttft_s", spread_tree(prompts ? of.run.ttft.spread() : Spread{.none = true})},
                {"tpot_s", spread_tree(of.run.tpot.spread())},
                {"e2e_s", spread_tree(of.run.e2e.spread())}};
  if (of.goal.given()) tree.parts.emplace_back("goal", goal_tree(of.goal));
  return tree;
}

FigureTree pool_cost_tree(const ServicePoolFigures& pool, const PoolCost& cost, bool prompts) {
  FigureTree tree;
  const ClassTokens tokens = tokens_of(pool);
  if (pool.tariff.usd_per_hour > 0) {
    tree.rows = {{"usd_per_hour_of_a_device", pool.tariff.usd_per_hour},
                 {"usd", cost.usd},
                 {"usd_idle", cost.usd_idle}};
    tree.rows.emplace_back("usd_per_million_input_tokens",
                           figure_if(prompts && tokens.input > 0, 1e6 * cost.usd_per_input_token));
    tree.rows.emplace_back("usd_per_million_output_tokens",
                           figure_if(tokens.output > 0, 1e6 * cost.usd_per_output_token));
  }
  if (pool.tariff.tiers_usd_per_hour > 0)
    tree.rows.emplace_back("tiers_usd_per_hour_of_a_device", pool.tariff.tiers_usd_per_hour);
  tree.rows.emplace_back("joules", figure_if(power_known(pool), cost.joules));
  return tree;
}

// Of encoders on a pool of their own, which tokens of prompts pay for.
FigureTree encoder_cost_tree(const PoolTariff& tariff, const PoolCost& cost) {
  return {{{"usd_per_hour_of_a_device", tariff.usd_per_hour},
           {"usd", cost.usd},
           {"usd_idle", cost.usd_idle},
           {"usd_per_million_input_tokens", 1e6 * cost.usd_per_input_token},
           {"joules", figure_if(tariff.watts > 0, cost.joules)}}};
}

// "; 0.2 USD a million tokens in, 1.3 out": of those that there are.
std::string price_of_tokens(const ServicePoolFigures& pool, const PoolCost& cost, bool prompts) {
  const ClassTokens tokens = tokens_of(pool);
  std::string text;
  const auto add = [&text](double usd, const char* way) {
    text += fmt::format("{}{:.3g} {}{}", text.empty() ? "; " : ", ", 1e6 * usd,
                        text.empty() ? "USD a million tokens " : "", way);
  };
  if (prompts && tokens.input > 0) add(cost.usd_per_input_token, "in");
  if (tokens.output > 0) add(cost.usd_per_output_token, "out");
  return text.empty() ? "; served nobody, and is in no class's" : text;
}

std::string price_source(const PoolTariff& tariff) {
  if (tariff.status == "given") return "as the scenario says";
  return fmt::format("{}, {}", tariff.source, tariff.status);
}

}  // namespace

FigureTree goal_tree(const ServiceGoal& goal) {
  FigureTree tree;
  if (goal.ttft.ns > 0) tree.rows.emplace_back("ttft_s", goal.ttft.seconds());
  if (goal.tpot.ns > 0) tree.rows.emplace_back("tpot_s", goal.tpot.seconds());
  return tree;
}

void add_classes(FigureTree& tree, const ServiceFigures& service, PoolRole does) {
  FigureTree classes;
  for (std::size_t i = 0; i < service.classes.size(); ++i)
    if (!service.classes[i].name.empty())
      classes.parts.emplace_back(service.classes[i].name, class_tree(service, i, does));
  if (!classes.parts.empty()) tree.parts.emplace_back("classes", std::move(classes));
}

// As goodput counts them: of classes that are promised something, or of all where none is.
std::int64_t good_requests(const ServiceFigures& service) {
  const bool any = std::any_of(service.classes.begin(), service.classes.end(),
                               [](const ServiceClassFigures& of) { return of.goal.given(); });
  std::int64_t good = 0;
  for (const ServiceClassFigures& of : service.classes) good += !any || of.goal.given() ? of.run.met : 0;
  return good;
}

void add_cost(FigureTree& tree, const ServiceFigures& service, PoolRole does) {
  const CostFigures& all = service.cost;
  const bool prompts = does != PoolRole::kDecode;
  FigureTree cost;
  if (all.unknown.empty()) {
    double input = 0, output = 0;
    for (const ServicePoolFigures& pool : service.pools) {
      const PoolCost& of = all.pools[&pool - service.pools.data()];
      for (const ClassTokens& tokens : pool.run.tokens) {
        input += static_cast<double>(tokens.input) * of.usd_per_input_token;
        output += static_cast<double>(tokens.output) * of.usd_per_output_token;
      }
    }
    input += static_cast<double>(all.input) * all.encoders.usd_per_input_token;
    cost.rows = {{"usd_per_hour", rate(all.usd * 3600, service.span.seconds())},
                 {"usd", all.usd},
                 {"usd_idle", all.usd_idle}};
    if (all.usd_unused > 0) cost.rows.emplace_back("usd_unused", all.usd_unused);
    if (all.encoders.usd > 0) cost.rows.emplace_back("usd_encoders", all.encoders.usd);
    cost.rows.emplace_back("usd_per_million_tokens",
                           a_million(all.usd, paid_tokens(all.input, all.output, does)));
    cost.rows.emplace_back("usd_per_million_input_tokens", a_million(input, prompts ? all.input : 0));
    cost.rows.emplace_back("usd_per_million_output_tokens", a_million(output, all.output));
    cost.rows.emplace_back("usd_per_thousand_good_requests",
                           rate(1e3 * all.usd, static_cast<double>(good_requests(service))));
  }
  const bool powers = std::all_of(service.pools.begin(), service.pools.end(), power_known);
  cost.rows.emplace_back("joules_per_output_token",
                         rate(all.joules, powers ? static_cast<double>(all.output) : 0));
  FigureTree pools;
  for (std::size_t i = 0; i < service.pools.size(); ++i)
    pools.parts.emplace_back(service.pools[i].run.name,
                             pool_cost_tree(service.pools[i], all.pools[i], prompts));
  if (all.unknown.empty() && all.encoders.usd > 0)
    pools.parts.emplace_back(service.encoder->pool, encoder_cost_tree(service.encoder->tariff, all.encoders));
  cost.parts.emplace_back("pools", std::move(pools));
  tree.parts.emplace_back("cost", std::move(cost));
}

std::string classes_text(const ServiceFigures& service, PoolRole does) {
  std::string text;
  if (service.classes.size() < 2) return text;
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "\n  {:<14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>14} {:>10}\n", "class",
                 "submitted", "rejected", "met", "TTFT p50", "TTFT p99", "TPOT p50", "USD/M tokens", "USD");
  const bool priced = service.cost.unknown.empty();
  for (std::size_t i = 0; i < service.classes.size(); ++i) {
    const ServiceClassFigures& of = service.classes[i];
    const std::string met =
        text_if(of.goal.given(), fmt::format("{:.1f}%", 100 * share(static_cast<double>(of.run.met),
                                                                    static_cast<double>(of.run.submitted))));
    const std::int64_t tokens = paid_tokens(of.run.input, of.run.output, does);
    const double usd = priced ? service.cost.class_usd[i] : 0;
    const auto at = [](const LatencyHistogram& times, double share, bool exists = true) {
      return text_if(exists && times.count() > 0, seconds_text(times.at(share)));
    };
    const bool prompts = does != PoolRole::kDecode;
    fmt::format_to(out, "  {:<14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>14} {:>10}\n", of.name,
                   grouped(of.run.submitted), grouped(of.run.rejected), met, at(of.run.ttft, 0.5, prompts),
                   at(of.run.ttft, 0.99, prompts), at(of.run.tpot, 0.5),
                   text_if(priced && tokens > 0, fmt::format("{:.3g}", million(usd, tokens))),
                   text_if(priced, fmt::format("{:.4g}", usd)));
  }
  if (priced && service.cost.usd_unused > 0)
    fmt::format_to(out, "  {:<14} {:>87}\n", "pools unused", fmt::format("{:.4g}", service.cost.usd_unused));
  return text;
}

namespace {

// Known without prices.
std::string energy_of_service(const ServiceFigures& service) {
  if (!std::all_of(service.pools.begin(), service.pools.end(), power_known)) return "";
  const bool by_tdp = std::any_of(service.pools.begin(), service.pools.end(),
                                  [](const ServicePoolFigures& pool) { return !pool.tariff.idle_watts; });
  return energy_text(share(service.cost.joules, static_cast<double>(service.cost.output)),
                     "J a token generated", by_tdp);
}

}  // namespace

std::string cost_text(const ServiceFigures& service, PoolRole does) {
  const CostFigures& all = service.cost;
  std::string text;
  const Out out = std::back_inserter(text);
  if (service.forecasts.requests > 0) {
    const auto count = static_cast<double>(service.forecasts.requests);
    fmt::format_to(
        out,
        "  forecasts          of the first token of {} requests: {:.1f}% off on average, bias {:+.1f}%\n",
        grouped(service.forecasts.requests), 100 * service.forecasts.error / count,
        100 * service.forecasts.bias / count);
  }
  if (!all.unknown.empty()) {
    fmt::format_to(out, "  cost               not known: no price of {} in the catalog\n", all.unknown);
    return text + energy_of_service(service);
  }
  const bool prompts = does != PoolRole::kDecode;
  fmt::format_to(out,
                 "  cost               {} USD: {} USD an hour, {} USD a million tokens ({}), {:.1f}% idle\n",
                 amount_text(all.usd), amount_text(share(all.usd * 3600, service.span.seconds())),
                 amount_text(million(all.usd, paid_tokens(all.input, all.output, does))),
                 prompts ? "in and out" : "out", 100 * share(all.usd_idle, all.usd));
  for (std::size_t i = 0; i < service.pools.size(); ++i) {
    const ServicePoolFigures& pool = service.pools[i];
    const PoolCost& of = all.pools[i];
    fmt::format_to(out, "  {}: {} USD, {} at {:.3g} USD an hour ({}){}\n", pool.run.name,
                   amount_text(of.usd), pool.tariff.accelerator, pool.tariff.usd_per_hour,
                   price_source(pool.tariff), price_of_tokens(pool, of, prompts));
    if (pool.tariff.tiers_usd_per_hour > 0)
      fmt::format_to(out, "  {}: a device's share of host memory and drives {:.3g} USD an hour, in these\n",
                     pool.run.name, pool.tariff.tiers_usd_per_hour);
  }
  if (all.encoders.usd > 0)
    fmt::format_to(out, "  {}: {} USD, {} at {:.3g} USD an hour ({}); {:.3g} USD a million tokens in\n",
                   service.encoder->pool, amount_text(all.encoders.usd), service.encoder->tariff.accelerator,
                   service.encoder->tariff.usd_per_hour, price_source(service.encoder->tariff),
                   1e6 * all.encoders.usd_per_input_token);
  if (all.usd_unused > 0)
    fmt::format_to(out, "  pools that served nobody are {:.1f}% of it\n",
                   100 * share(all.usd_unused, all.usd));
  return text + energy_of_service(service);
}

}  // namespace moebius
