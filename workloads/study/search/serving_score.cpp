#include "workloads/study/search/serving_score.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/accuracy/record.h"
#include "workloads/report/report_uncertainty.h"

namespace moebius {
namespace {

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// Seconds of a request by where it was, mean.
std::vector<std::pair<std::string, double>> parts_of_request(const Report& report) {
  const TimeShares& shares = report.service->shares;
  const auto count = static_cast<double>(std::max<std::int64_t>(1, report.serving->completed));
  return {{"in the queue", shares.queue / count},
          {"in prefill", shares.prefill / count},
          {"between pools", shares.handover / count},
          {"in decoding", shares.decode / count},
          {"in encoders", shares.encode / count},
          {"on links to users", shares.network / count},
          {"received by the host", shares.reception / count}};
}

// Half of the interval of what the service's own pace decides.
double expected_error(const Report& report) {
  double error = 0;
  for (const FigureInterval& of : uncertainty_of(report, shipped_record()).figures) {
    if (of.figure == "TTFT") continue;
    error = std::max(of.high / of.value - 1, 1 - of.low / of.value);
  }
  return error;
}

// Tokens of answers, of each class by the share of its requests that were given what they are promised.
double kept_output(const ServiceFigures& service) {
  double tokens = 0;
  for (const ServiceClassFigures& of : service.classes)
    tokens += ratio(static_cast<double>(of.run.met), static_cast<double>(of.run.completed)) *
              static_cast<double>(of.run.output);
  return tokens;
}

std::string_view busy_key(const ServicePhase& phase) {
  switch (phase.role) {
    case PoolRole::kBoth:
      return "busy";
    case PoolRole::kPrefill:
      return "busy_prefill";
    case PoolRole::kDecode:
      return "busy_decode";
  }
  return "";
}

}  // namespace

ServingScore::ServingScore(SearchGoal goal, const Scenario& scenario) : goal_(goal) {
  const auto needed = [&](bool known, const char* what, const Pool& pool) {
    if (!known)
      throw input_error(
          fmt::format("--goal {}: the {} of {} is not known", name_of(goal), what, pool.accelerator.id));
  };
  for (const Pool& pool : scenario.cluster->pools) {
    if (goal == SearchGoal::kTokensPerDollar) needed(pool.accelerator.price.value > 0, "price", pool);
    if (goal == SearchGoal::kTokensPerJoule) needed(pool.accelerator.power.value > 0, "power", pool);
  }
  const std::vector<RequestClass>& classes = scenario.service.classes;
  if (goal == SearchGoal::kGoodput &&
      std::none_of(classes.begin(), classes.end(), [](const RequestClass& of) { return of.goal.given(); }))
    throw input_error(fmt::format(
        "{}: /sla: goodput counts requests that are given what they are promised: expected promises, found "
        "none; or --goal throughput",
        scenario.file));
}

double ServingScore::score_of(double value) {
  return value > 0 ? 1 / value : std::numeric_limits<double>::infinity();
}

PlanFigures ServingScore::figures(const Report& report, const ServingDemand& demand) const {
  const ServingFigures& serving = *report.serving;
  const ServiceFigures& service = *report.service;
  const double met_output = kept_output(service);
  PlanFigures figures;
  switch (goal_) {
    case SearchGoal::kStepTime:  // of training
    case SearchGoal::kGoodput:
      figures.value = serving.goodput_rps;
      break;
    case SearchGoal::kThroughput:
      figures.value = serving.output_tokens_per_s;
      break;
    case SearchGoal::kTokensPerDollar:
      figures.value = ratio(met_output, service.cost.usd);
      break;
    case SearchGoal::kTokensPerJoule:
      figures.value = ratio(met_output, service.cost.joules);
      break;
  }
  // Of requests that come at times of their own the share that is kept says how good a plan is: when the last
  // answer ends, which a run's rate counts too, is that of one request.
  const bool by_share = goal_ == SearchGoal::kGoodput && demand.open;
  figures.score = score_of(by_share ? serving.slo_attainment * demand.rate() : figures.value);
  figures.tie = serving.e2e.mean;
  figures.expected_error = expected_error(report);
  figures.parts = parts_of_request(report);
  const double devices = service.devices();
  figures.figures = {{"value_per_device", ratio(figures.value, devices)},
                     {"devices", devices},
                     {"slo_attainment", serving.slo_attainment},
                     {"goodput_rps", serving.goodput_rps},
                     {"output_tokens_per_s", serving.output_tokens_per_s},
                     {"input_tokens_per_s", serving.input_tokens_per_s},
                     {"ttft_mean_s", serving.ttft.mean},
                     {"ttft_p99_s", serving.ttft.p99},
                     {"tpot_mean_s", serving.tpot.mean},
                     {"tpot_p99_s", serving.tpot.p99},
                     {"e2e_mean_s", serving.e2e.mean}};
  if (service.cost.unknown.empty())
    figures.figures.emplace_back("usd_per_hour", ratio(service.cost.usd, service.span.seconds() / 3600));
  for (std::size_t i = 0; i < service.pools.size(); ++i)
    figures.figures.emplace_back(busy_key(report.scenario->service.phases[i]), service.pools[i].run.busy);
  return figures;
}

void ServingScore::set_rate(PlanFigures& figures, double rate) {
  const double devices = figures.figure("devices");
  figures.value = rate;
  figures.score = score_of(rate);
  for (auto& [key, value] : figures.figures)
    if (key == "value_per_device") value = ratio(rate, devices);
}

}  // namespace moebius
