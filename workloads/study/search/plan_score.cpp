#include "workloads/study/search/plan_score.h"

#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/report/report_figures.h"
#include "workloads/report/step_price.h"

namespace moebius {
namespace {

std::vector<std::pair<std::string, double>> parts_of_step(const Report& report) {
  const TimeFigures time = time_figures(report);
  const double recompute =
      report.metrics.breakdown.recompute / std::max(1, report.scenario->training.num_steps());
  double exchanges = 0, messages = 0;
  for (const TimeFigures::Kind& kind : time.kinds) {
    if (kind.kind == OpKind::kDispatch || kind.kind == OpKind::kCombine) exchanges += kind.exposed;
    if (kind.kind == OpKind::kSend || kind.kind == OpKind::kRecv) messages += kind.exposed;
  }
  return {{"compute", time.compute - recompute},
          {"computed again", recompute},
          {"exposed dispatch and combine", exchanges},
          {"exposed messages between stages", messages},
          {"other exposed communication", std::max(0.0, time.exposed - exchanges - messages)},
          {"waiting for other ranks", time.waiting},
          {"bubble", time.bubble}};
}

}  // namespace

PlanScore::PlanScore(SearchGoal goal, const Scenario& scenario)
    : goal_(goal),
      tokens_(static_cast<double>(scenario.training.global_batch * scenario.training.sequence_length)),
      cluster_(&*scenario.cluster) {
  const StepTariff all = step_tariff(*cluster_, cluster_->fabric.num_devices());
  if (goal == SearchGoal::kTokensPerDollar && !all.no_price.empty())
    throw input_error(fmt::format("--goal tokens-per-dollar: the price of {} is not known", all.no_price));
  if (goal == SearchGoal::kTokensPerJoule && !all.no_power.empty())
    throw input_error(fmt::format("--goal tokens-per-joule: the power of {} is not known", all.no_power));
}

double PlanScore::of(double seconds, double busy, int ranks) const {
  switch (goal_) {
    case SearchGoal::kStepTime:
    case SearchGoal::kGoodput:  // of services
    case SearchGoal::kThroughput:
      return seconds;
    case SearchGoal::kTokensPerDollar:
      return step_tariff(*cluster_, ranks).usd(seconds);
    case SearchGoal::kTokensPerJoule:
      return step_tariff(*cluster_, ranks).joules(seconds, busy);
  }
  return seconds;
}

double PlanScore::value(double score) const {
  return goal_ == SearchGoal::kStepTime ? score : tokens_ / score;
}

PlanFigures PlanScore::figures(const Report& report) const {
  const TrainingFigures training = training_figures(report);
  const TimeFigures time = time_figures(report);
  PlanFigures figures;
  const StepTariff tariff = step_tariff(*cluster_, report.scenario->ranks());
  figures.score = of(training.step_time_s, time.compute + time.exposed, report.scenario->ranks());
  figures.value = value(figures.score);
  figures.figures = {{"step_time_s", training.step_time_s}, {"tokens_per_s", training.tokens_per_s}};
  if (report.memory) figures.figures.emplace_back("memory_bytes", report.memory->peak().value);
  if (tariff.no_price.empty()) figures.figures.emplace_back("usd_per_hour", tariff.usd_per_hour);
  if (const auto interval = interval_figures(report)) figures.expected_error = interval->relative;
  figures.parts = parts_of_step(report);
  return figures;
}

}  // namespace moebius
