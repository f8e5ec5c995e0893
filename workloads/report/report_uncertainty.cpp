#include "workloads/report/report_uncertainty.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/accuracy/error_spread.h"
#include "workloads/report/number_text.h"
#include "workloads/report/report_figures.h"

namespace moebius {

namespace {

// A headline figure before its interval is known.
struct Headline {
  std::string key;
  double value = 0;
  bool rate = false;
  AccuracyClass of = AccuracyClass::kTraining;
  std::string figure;
};

std::vector<Headline> training_headlines(const Report& report) {
  const TrainingFigures figures = training_figures(report);
  constexpr AccuracyClass kOf = AccuracyClass::kTraining;
  return {{"step_time_s", figures.step_time_s, false, kOf, "step time"},
          {"tokens_per_s", figures.tokens_per_s, true, kOf, "step time"},
          {"mfu", figures.mfu, true, kOf, "step time"}};
}

// The rate of a service that requests come to as they come is theirs and not its own.
std::vector<Headline> serving_headlines(const Report& report) {
  constexpr AccuracyClass kOf = AccuracyClass::kServing;
  const ServingFigures& figures = *report.serving;
  const PoolRole does = report.service ? report.scenario->service.does : PoolRole::kBoth;
  std::vector<Headline> list;
  if (does != PoolRole::kDecode) list.push_back({"ttft_s.mean", figures.ttft.mean, false, kOf, "TTFT"});
  if (does != PoolRole::kPrefill) list.push_back({"tpot_s.mean", figures.tpot.mean, false, kOf, "TPOT"});
  const bool own_pace = !report.service || report.scenario->traffic.users > 0;
  if (own_pace) list.push_back({"output_tokens_per_s", figures.output_tokens_per_s, true, kOf, "throughput"});
  return list;
}

// That members of one group stand on.
int nodes_of(const Scenario& scenario) {
  const Node& node = scenario.cluster->pools.front().node;
  return (scenario.collective.group_ranks() + node.accelerators - 1) / node.accelerators;
}

std::vector<Headline> collective_headlines(const Report& report) {
  if (!report.tenants.empty()) return {};
  constexpr AccuracyClass kOf = AccuracyClass::kCollectives;
  if (report.flows) return {{"flows.mean_fct_s", report.flows->mean_s, false, kOf, "flows over a fabric"}};
  const CollectiveRates figures = collective_figures(report);
  const char* reach = nodes_of(*report.scenario) > 1 ? "between nodes" : "in a node";
  return {{"collective.time_s", figures.time_s, false, kOf, reach},
          {"collective.busbw_bytes_per_s", figures.busbw, true, kOf, reach}};
}

std::vector<Headline> headlines_of(const Report& report) {
  switch (report.scenario->kind) {
    case ScenarioKind::kTraining:
      return training_headlines(report);
    case ScenarioKind::kServing:
      return serving_headlines(report);
    case ScenarioKind::kCollective:
      return collective_headlines(report);
    case ScenarioKind::kKvReplay:
    case ScenarioKind::kCluster:
      return {};
  }
  return {};
}

FigureInterval interval_of(const Headline& headline, const ErrorSpread& spread, double parts) {
  const ErrorBand band = band_of(spread, parts);
  const double shorter = std::exp(-band.high), longer = std::exp(-band.low);  // measured over ours, of a time
  FigureInterval interval{headline.key,    headline.value, 0,          0, headline.of,
                          headline.figure, spread.sources, spread.rows};
  interval.low = headline.value * (headline.rate ? 1 / longer : shorter);
  interval.high = headline.value * (headline.rate ? 1 / shorter : longer);
  return interval;
}

// ---- what nothing was measured of ----

using TestSources = std::vector<const AccuracySource*>;

std::string of_devices(const Report& report, const Headline& headline, const TestSources& sources) {
  std::int64_t most = 0;
  for (const AccuracySource* source : sources) most = std::max(most, source->devices);
  if (most == 0 || report.devices() <= most) return "";
  return fmt::format("{} devices: the rows of {} have at most {}", grouped(report.devices()), headline.figure,
                     grouped(most));
}

std::vector<std::string> of_chips(const Report& report, const Headline& headline,
                                  const TestSources& sources) {
  std::vector<std::string> sentences;
  for (const Pool& pool : report.scenario->cluster->pools) {
    const std::string& id = pool.accelerator.id;
    const auto has = [&](const AccuracySource* source) {
      return std::find(source->chips.begin(), source->chips.end(), id) != source->chips.end();
    };
    if (std::none_of(sources.begin(), sources.end(), has))
      sentences.push_back(fmt::format("{}: no row of {} was measured on it", id, headline.figure));
  }
  return sentences;
}

bool is_called(const Accelerator& chip, const std::string& name) {
  return chip.is(name);
}

// Compute takes what it takes on the scenario's chips: simulated, or measured on such a one.
bool tells_its_chips(const Report& report) {
  const RunFacts& facts = report.facts;
  if (facts.executor != "emulate") return facts.executor == "sim";
  const std::vector<Pool>& pools = report.scenario->cluster->pools;
  return facts.measured && std::all_of(pools.begin(), pools.end(), [&](const Pool& pool) {
           return is_called(pool.accelerator, facts.measured->chip);
         });
}

double share_of_compute(const Metrics& metrics, std::initializer_list<Origin> origins) {
  const TrustFigures trust = trust_figures(metrics);
  const double compute = trust.busy * (1 - trust.network_share);
  double of = 0;
  for (const Origin origin : origins) of += metrics.seconds_by_origin[static_cast<int>(origin)];
  return compute > 0 ? of / compute : 0;
}

constexpr double kWorthSaying = 0.05;  // of compute

std::vector<std::string> of_kernels(const Metrics& metrics) {
  std::vector<std::string> sentences;
  const double beyond = share_of_compute(metrics, {Origin::kExtrapolated});
  const double unmeasured = share_of_compute(metrics, {Origin::kAnalytic, Origin::kRoofline});
  if (beyond > kWorthSaying)
    sentences.push_back(
        fmt::format("kernels: {:.0f}% of compute is beyond the shapes that were measured", 100 * beyond));
  if (unmeasured > kWorthSaying)
    sentences.push_back(
        fmt::format("kernels: {:.0f}% of compute is told by a model alone", 100 * unmeasured));
  return sentences;
}

void add_once(std::vector<std::string>& list, const std::string& sentence) {
  if (!sentence.empty() && std::find(list.begin(), list.end(), sentence) == list.end())
    list.push_back(sentence);
}

std::string value_text(const FigureInterval& interval, double value) {
  if (interval.key.find("_s") == std::string::npos) return fmt::format("{:.1f}%", 100 * value);  // MFU
  return interval.key.find("per_s") != std::string::npos ? rate_text(value) : seconds_text(value);
}

}  // namespace

double deviation_of_parts(const Report& report) {
  const std::optional<IntervalFigures> kernels = interval_figures(report);
  if (!kernels) return 0;
  const auto collectives = spread_of(shipped_record().tests(AccuracyClass::kCollectives, "between nodes"));
  const double network = collectives ? (1 - kernels->covered) * collectives->deviation : 0;
  return std::hypot(std::log1p(kernels->relative), network);
}

Uncertainty uncertainty_of(const Report& report, const AccuracyRecord& record) {
  Uncertainty uncertainty;
  const RunFacts& facts = report.facts;
  if (!facts.on_cluster || !tells_its_chips(report)) return uncertainty;
  const double parts = deviation_of_parts(report);
  for (const Headline& headline : headlines_of(report)) {
    const TestSources sources = record.tests(headline.of, headline.figure);
    const std::optional<ErrorSpread> spread = spread_of(sources);
    if (headline.value <= 0) continue;
    if (!spread) {
      add_once(uncertainty.outside, fmt::format("{}: no interval, measured by {} source{}", headline.figure,
                                                sources.size(), sources.size() == 1 ? "" : "s"));
      continue;
    }
    uncertainty.figures.push_back(interval_of(headline, *spread, parts));
    add_once(uncertainty.outside, of_devices(report, headline, sources));
    for (const std::string& sentence : of_chips(report, headline, sources))
      add_once(uncertainty.outside, sentence);
  }
  if (!uncertainty.figures.empty())
    for (const std::string& sentence : of_kernels(report.metrics)) add_once(uncertainty.outside, sentence);
  return uncertainty;
}

std::string uncertainty_text(const Report& report) {
  const Uncertainty uncertainty = uncertainty_of(report, shipped_record());
  if (uncertainty.figures.empty() && uncertainty.outside.empty()) return "";
  std::string text = "\nwhere four in five measured ones would lie\n";
  const auto out = std::back_inserter(text);
  for (const FigureInterval& figure : uncertainty.figures)
    fmt::format_to(out, "  {:<28} {:>10} .. {:<10} by {} rows of {} sources, {}\n", figure.key,
                   value_text(figure, figure.low), value_text(figure, figure.high), grouped(figure.rows),
                   figure.sources, to_string(figure.of));
  for (const std::string& sentence : uncertainty.outside)
    fmt::format_to(out, "  {:<28} {}\n", "not covered by them", sentence);
  return text;
}

}  // namespace moebius
