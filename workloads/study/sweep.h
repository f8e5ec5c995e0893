// A study carried out: the points that its results file lacks, by worker processes here and elsewhere.
#pragma once

#include <functional>
#include <string>

#include "workloads/study/results_file.h"
#include "workloads/study/study.h"
#include "workloads/study/workers/worker_processes.h"

namespace moebius {

// The report of a scenario as JSON; throws Error.
using RunPoint = std::function<std::string(const Document& scenario)>;

// The processes of one launcher (mpirun). `share` gives everyone the first one's text; each calls it once.
struct SweepCompanions {
  int self = 0, count = 1;
  std::function<std::string(const std::string& text)> share = {};
};

struct SweepRequest {
  const Study& study;
  std::string means;      // see key_of()
  std::string data;       // the folder of catalogs added to the program's, as it was named; empty: none
  std::string data_mark;  // what these say, wherever they lie
  RunPoint run;
  int workers = 1;     // processes on this machine
  bool retry = false;  // points that failed before
  SweepCompanions companions = {};
};

struct SweepCourse {
  std::int64_t study = 0;    // its number in the results
  std::int64_t carried = 0;  // points that this call carried out
  int others = 0;            // workers of other processes of the launcher
};

// Returns when no point lacks a result. What fails is recorded as such, and does not end the sweep. A column
// that the first report lacks is told on standard error while the others run.
SweepCourse sweep(const SweepRequest& request, ResultsFile& results);

// The life of the launcher's other processes: they work for the first one until it is done.
void work_for_first(const SweepRequest& request);

}  // namespace moebius
