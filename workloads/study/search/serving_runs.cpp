#include "workloads/study/search/serving_runs.h"

#include <algorithm>
#include <cmath>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr double kFastest = 4096;  // times the traffic: whatever keeps its promises there keeps them
constexpr double kNear = 1.02;     // rates that are told apart

}  // namespace

std::optional<PlanFigures> ServingRuns::figures(const Document& plan, double from) const {
  StepTimings timings;  // of this plan alone: what an iteration takes depends a little on those before it
  try {
    return request_.attainment > 0 ? at_highest_rate(plan, timings, from) : run(plan, timings, 1).figures;
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kRun) throw;
    return std::nullopt;
  }
}

ServingRuns::Run ServingRuns::run(const Document& plan, StepTimings& timings, double times_faster) const {
  Job job = read_job(plan, {}, *request_.library);
  keep_first_requests(job.scenario, most_);
  job.scenario.traffic.rate_scale *= times_faster;
  job.scenario.timeline.detail = Detail::kNone;
  Hooks hooks;
  hooks.wants_spans = false;
  hooks.quiet = true;
  hooks.timings = &timings;
  const Outcome outcome = perform(job, start_, hooks);
  Run run{{}, demand_of(job.scenario, most_)};
  run.figures = score_.figures(outcome.report, run.demand);
  run.figures.times_faster = times_faster;
  return run;
}

// From the guess twice as fast or slow until the highest rate lies between two, then by bisection of their
// logarithms.
PlanFigures ServingRuns::at_highest_rate(const Document& plan, StepTimings& timings, double from) const {
  const auto keeps = [&](const Run& run) {
    return run.figures.figure("slo_attainment") >= request_.attainment;
  };
  double low = from, high = from;
  Run best = run(plan, timings, from);
  bool kept = keeps(best);
  std::optional<Run> slowest;
  if (!kept) {  // perhaps not even where each request is served alone
    slowest = run(plan, timings, 1 / kFastest);
    if (!keeps(*slowest)) {
      ServingScore::set_rate(slowest->figures, 0);
      return slowest->figures;
    }
  }
  for (high *= 2; kept && high <= kFastest && !late_(); high *= 2) {
    Run faster = run(plan, timings, high);
    if (!keeps(faster)) break;
    best = std::move(faster);
    low = high;
  }
  while (!kept && low > 1 / kFastest) {
    high = low;
    low = late_() ? 1 / kFastest : std::max(0.5 * low, 1 / kFastest);
    best = low > 1 / kFastest ? run(plan, timings, low) : std::move(*slowest);
    kept = keeps(best);
  }
  while (kept && high / low > kNear && !late_()) {
    const double middle = std::sqrt(low * high);
    Run between = run(plan, timings, middle);
    (keeps(between) ? low : high) = middle;
    if (keeps(between)) best = std::move(between);
  }
  ServingScore::set_rate(best.figures, kept ? best.demand.rate() : 0);
  return best.figures;
}

}  // namespace moebius
