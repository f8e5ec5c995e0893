#include "workloads/study/search/plan_score.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/report/report_figures.h"
#include "workloads/report/step_price.h"
#include "workloads/study/search/energy_floor.h"

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

// Of products a token's active parameters are multiplied once forward and twice back; attention, heads and
// what is computed again come on top.
PlanScore::PlanScore(SearchGoal goal, const Scenario& scenario, const std::string& data)
    : goal_(goal),
      tokens_(static_cast<double>(scenario.training.global_batch * scenario.training.sequence_length)),
      cluster_(&*scenario.cluster) {
  const StepTariff all = step_tariff(*cluster_, cluster_->fabric.num_devices());
  if (goal == SearchGoal::kTokensPerDollar && !all.no_price.empty())
    throw input_error(fmt::format("--goal tokens-per-dollar: the price of {} is not known", all.no_price));
  if (goal == SearchGoal::kTokensPerJoule && !all.no_power.empty())
    throw input_error(fmt::format("--goal tokens-per-joule: the power of {} is not known", all.no_power));
  if (goal != SearchGoal::kStepTime && scenario.rl)
    throw input_error(fmt::format(
        "--goal {}: counts training alone, and a step of reinforcement learning has other phases: expected "
        "step-time",
        name_of(goal)));
  if (goal != SearchGoal::kTokensPerJoule) return;
  double least = std::numeric_limits<double>::infinity();
  for (const EnergyFloor& floor : energy_floors(scenario, data)) {
    idle_watts_.of_pool.push_back(floor.idle_watts);
    least = std::min(least, floor.joule_per_flop);
  }
  work_joules_ = 6 * active_parameters(scenario.model, CountedTables::kNone) * tokens_ * least;
}

double PlanScore::least(double seconds, double busy, const TrainingPlan& plan) const {
  switch (goal_) {
    case SearchGoal::kStepTime:
    case SearchGoal::kGoodput:  // of services
    case SearchGoal::kThroughput:
      return seconds;
    case SearchGoal::kTokensPerDollar:
      return step_tariff(*cluster_, plan.ranks()).usd(seconds);
    case SearchGoal::kTokensPerJoule:  // what is dropped is not multiplied
      return step_tariff(*cluster_, plan.ranks(), idle_watts_)
          .joules(seconds, busy, plan.capacity > 0 ? 0 : work_joules_);
  }
  return seconds;
}

double PlanScore::of(double seconds, const Report& report) const {
  const StepTariff tariff = step_tariff(*cluster_, report.scenario->ranks(), report.facts.idle_watts);
  if (goal_ == SearchGoal::kTokensPerDollar) return tariff.usd(seconds);
  if (goal_ != SearchGoal::kTokensPerJoule) return seconds;
  const TimeFigures time = time_figures(report);
  return tariff.joules(seconds, time.compute + time.exposed,
                       report.metrics.joules() / report.scenario->training.num_steps());
}

double PlanScore::value(double score) const {
  return goal_ == SearchGoal::kStepTime ? score : tokens_ / score;
}

PlanFigures PlanScore::figures(const Report& report) const {
  const TrainingFigures training = training_figures(report);
  PlanFigures figures;
  const StepTariff tariff = step_tariff(*cluster_, report.scenario->ranks());
  figures.score = of(training.step_time_s, report);
  // Padding is nobody's token, and other replicas pad other rows: as if all had as many of the others.
  if (goal_ != SearchGoal::kStepTime && report.scenario->training.lengths)
    figures.score *= tokens_ / (training.tokens_per_s * training.step_time_s);
  figures.value = value(figures.score);
  figures.figures = {{"step_time_s", training.step_time_s}, {"tokens_per_s", training.tokens_per_s}};
  if (report.memory) figures.figures.emplace_back("memory_bytes", report.memory->peak().value);
  if (tariff.no_price.empty()) figures.figures.emplace_back("usd_per_hour", tariff.usd_per_hour);
  if (const auto interval = interval_figures(report)) figures.expected_error = interval->relative;
  figures.parts = parts_of_step(report);
  return figures;
}

}  // namespace moebius
