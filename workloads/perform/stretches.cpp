#include "workloads/perform/stretches.h"

#include <fmt/format.h>

namespace moebius {
namespace {

// What has been issued is carried out before an interrupted run ends; one step is enough for devices to have
// the next at hand while they end this one.
constexpr int kStepsAhead = 2;

}  // namespace

Stretches::Stretches(Job& job, const StartedExecutor& engine) : job_(job), engine_(engine) {
  if (!engine.save || !job.training) return;
  interruption_.emplace();
  job_.training->stay_within(kStepsAhead);
  plan_next();
}

void Stretches::plan_next() {
  const int every = job_.scenario.save_every;
  if (every > 0) job_.training->stop_before(job_.training->steps_begun() + every);
}

bool Stretches::stops() const {
  const bool asked = interruption_->came();
  return engine_.stops ? engine_.stops(asked) : asked;
}

void Stretches::look() {
  if (interruption_ && stops()) job_.training->stop_before(0);
}

bool Stretches::go_on() {
  if (!interruption_) return false;
  const int done = job_.training->steps_begun();
  TrainingWorkload& work = job_.scenario.training;
  const bool interrupted = stops();  // what comes from here on, before files are written, counts after them
  // Each process is told, some when all have stopped: that must end neither one of them nor the writing.
  if (interrupted && engine_.stops) Interruption::ignore_more();
  engine_.save(done);
  if (done >= work.steps) return false;
  if (interrupted) {
    interrupted_ = fmt::format(
        "interrupted after step {} of {}: to go on, add --set /plan/weights={} --set /plan/resume=true", done,
        work.steps, job_.scenario.save);
    work.steps = done;
    return false;
  }
  job_.training->go_on();
  plan_next();
  return true;
}

}  // namespace moebius
