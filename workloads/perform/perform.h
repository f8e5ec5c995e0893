// One job carried out by one executor, from its schedule to its report. Which executor that is, the caller's
// factory decides.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "workloads/job.h"
#include "workloads/perform/group_ledger.h"
#include "workloads/perform/observed_workload.h"
#include "workloads/report/report.h"
#include "workloads/schedule/board_clocks.h"
#include "workloads/schedule/executor.h"
#include "workloads/schedule/recorder.h"
#include "workloads/schedule/replay.h"
#include "workloads/version.h"

namespace moebius {

// An executor with what it needs to live, what is said of it in the report, and what it can tell afterwards.
struct StartedExecutor {
  std::vector<std::shared_ptr<const void>> keepers;  // destroyed after the executor
  std::unique_ptr<Executor> executor;
  BoardClocks* clocks = nullptr;  // the executor's; null: it has none that remember
  bool stands_in = false;         // for one that there is once in a process: of a job that rehearses
  RunFacts facts;
  std::function<std::vector<double>()> losses = {};  // of each step; empty: it computes no numbers
  std::function<std::vector<float>(int rank, std::uint32_t key)> tensor =
      {};                                                 // of the whole run; empty: no numbers
  std::function<void(GroupLedger&)> tell_transfers = {};  // bytes that ranks really moved
  std::function<void(RunFacts&)> tell_facts = {};         // what only the end of the run knows
  std::function<OpDurations()> durations =
      {};                                   // of ops that were timed one by one; empty: spans are its times
  std::function<void(int step)> save = {};  // a checkpoint, so many steps being done; empty: none is kept
  // Of several processes that share the run: whether all of them stop, told whether this one was asked to;
  // the same in each behind the same wait. Empty: this one is alone.
  std::function<bool(bool asked)> stops = {};
  std::function<void()> leave = {};  // writes what else a finished run leaves behind, beside its report
};

using StartExecutor = std::function<StartedExecutor(const Job&, const Layout&, Recorder&)>;

struct StepTimings;

// Who listens: `observer` hears of every submission, `inspect` sees the executor before it goes.
struct Hooks {
  ObservedWorkload::Observer observer = [](const Submission&) {};
  std::function<void(const StartedExecutor&)> inspect = [](const StartedExecutor&) {};
  bool wants_spans = true;  // false: no one looks at those of the outcome's timeline
  // The first step that waits for all of those before, so that it can be looked at by itself; none by
  // default.
  std::int32_t barrier = std::numeric_limits<std::int32_t>::max();
  bool quiet = false;  // no progress bar: several jobs run side by side
  // A service: what iterations take is looked up here and added; its error is then not measured.
  StepTimings* timings = nullptr;
};

struct Outcome {
  Report report;  // of the job, which it refers to
  Timeline timeline;
  std::string interrupted;  // how to go on; empty: the run came to its end
};

// Runs the job to its end, with a progress bar on a terminal. Errors are those of the executor.
Outcome perform(Job& job, const StartExecutor& start, const Hooks& hooks);

// Whether a folded step comes out too long: a folded rank is the fullest one of every exchange, but where two
// passes take turns no rank is the fullest of both, and what it waits for in one is hidden behind the other.
bool folding_overstates(const Scenario& scenario);

// Which run it is, before its other facts.
void name_run(Timeline& timeline, const Job& job, const RunFacts& facts);

// Of a job whose figures are of events on its cluster: nothing in it yet.
Outcome outcome_of_events(const Job& job);

// What the process has used, and the time since `started`, into the facts.
void add_process_use(RunFacts& facts, std::chrono::steady_clock::time_point started);

}  // namespace moebius
