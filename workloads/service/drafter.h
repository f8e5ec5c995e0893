// What making guesses takes: a module of the model, or a small model, that goes through every iteration's
// tokens, and then through those that it has guessed itself.
#pragma once

#include "workloads/perform/perform.h"
#include "workloads/service/pools.h"
#include "workloads/serving/system/iteration_timer.h"

namespace moebius {

class Drafter {
 public:
  // `pool` has a drafter and outlives this one. `balanced`: routes of the iterations that it guesses for.
  Drafter(const ServicePool& pool, const StartExecutor& start, const std::shared_ptr<RouteCache>& balanced);

  // Of an iteration: the drafter's keys of all its rows, whose last gives the first guess, and a row of each
  // decoding sequence for each further guess.
  StepTime time(const StepPoint& point);

 private:
  int drafts_;
  Recorder recorder_;
  StartedExecutor engine_;
  ServingJob served_;
  IterationTimer timer_;
};

// The module that guesses (DeepSeek-V3, section 2.2) as a model of one layer, the last one's kind.
Model module_of(const Model& model);

}  // namespace moebius
