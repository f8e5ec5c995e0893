#include "workloads/perform/job_step.h"

#include "workloads/report/report_figures.h"

namespace moebius {

JobStep job_step(const Report& report) {
  const TrainingFigures training = training_figures(report);
  const double compute = time_figures(report).compute;
  if (!report.reinforcement)
    return {.seconds = training.step_time_s,
            .tokens = training.tokens_per_s * training.step_time_s,
            .computing = compute};
  // A rollout reads memory for most of its time, and its reading does not follow the clock.
  const ReinforcementFigures& all = *report.reinforcement;
  const auto updates = static_cast<double>(all.updates);
  return {.seconds = all.step_time_s(),
          .tokens = all.tokens,
          .updates = updates,
          .computing = compute * updates + all.scoring_s()};
}

}  // namespace moebius
