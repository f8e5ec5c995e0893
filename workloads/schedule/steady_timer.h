// Times pieces of work one by one, each as it runs when it is repeated without end: not as it runs after
// whatever was timed before it.
#pragma once

#include <functional>

#include "workloads/schedule/board_clocks.h"
#include "workloads/schedule/executor.h"

namespace moebius {

class SteadyTimer {
 public:
  // Both outlive it. `clocks`: the executor's; null: it has none that remember. The executor is asked for
  // nothing else.
  SteadyTimer(Executor& executor, BoardClocks* clocks = nullptr) : executor_(executor), clocks_(clocks) {}

  // Seconds from the begin of what `submit` gives to the executor to the end of the last op of it. It is
  // called once for each time that the work has to run until its clocks settle.
  double seconds(const std::function<void(Executor&)>& submit);

 private:
  double once(const std::function<void(Executor&)>& submit);

  Executor& executor_;
  BoardClocks* clocks_;
  Time end_;
};

}  // namespace moebius
