// One schedule, simulated and executed, and judged: what both did must be equal, and how far their times lie
// apart is explained.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "workloads/crosscheck/closed_loop.h"
#include "workloads/crosscheck/virtual_machine.h"
#include "workloads/perform/perform.h"
#include "workloads/schedule/compare.h"
#include "workloads/schedule/critical_path.h"

namespace moebius {

inline constexpr int kExecutions = 5;

struct CrosscheckRequest {
  std::function<Job()> read;  // the scenario, once for each run
  StartExecutor simulate, execute;
  std::string out;  // directory for simulated/, executed/ and crosscheck.json; empty: none
  std::function<VirtualMachine(const Job&)> machine = {};  // that is simulated; empty: the scenario's own
  int executions = kExecutions;
  // What a first step, or a first pass through a service's schedule, has to make ready is not judged: the
  // jobs that `read` gives have a step more in training; a service is carried out twice.
  bool warm = false;
  StartExecutor live = {};  // executes a service in a closed loop, as it runs by itself; empty: `execute`
};

// What an error of a prediction should stay below.
struct CrosscheckGoals {
  double makespan = 0, ops = 0;
};
CrosscheckGoals goals_of(const std::string& executor);  // host: 20% and 15%; cuda: 10% and 10%

struct Crosscheck {
  std::string scenario, executor;  // who executed: "host", "cuda"
  std::string machine;             // that was simulated, as a sentence; empty: the scenario's own
  int executions = 0;
  std::string warm_up;     // what went before each; empty: nothing
  std::string numbers;     // that executions are compared by: "losses", "answers"; empty: they have none
  bool repeatable = true;  // all of them computed the same ones
  Comparison comparison;   // a: simulated, b: executed, which errors are shares of
  std::vector<GroupBytes> groups;
  std::optional<PathDifference> paths;  // where ops and order agree
  std::optional<ClosedLoop> loop;       // of a service, whose schedule follows from the clock
  bool same() const;                    // ops, order and bytes

  // Against what was measured. Of nothing measured: 0.
  double makespan_error() const;  // |simulated - executed| / executed
  bool comparable() const { return !machine.empty(); }
};

// A whole service is carried out once by whoever executes and once by the simulator, each with decisions by
// its own clock; what the first issued is the one schedule that both then carry out.
// Simulates once and executes several times. Executors that measure ops (StartedExecutor::durations) are
// replayed (replay.h) with the median of each op; of others the run of the median makespan counts. No
// execution leaves a checkpoint.
Crosscheck crosscheck(const CrosscheckRequest& request);

std::string to_text(const Crosscheck& result);
std::string to_json(const Crosscheck& result);  // one object, ends with a newline

}  // namespace moebius
