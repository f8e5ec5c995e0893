// The host executor as one that carries out jobs: weights to start from, a checkpoint and a dump to leave
// behind.
#pragma once

#include <string>

#include "workloads/perform.h"

namespace moebius {

class Processes;

struct HostRun {
  std::string dump_activations;    // a file; empty: none
  Processes* processes = nullptr;  // that share the run; null: this one alone
};

// The executor for a job, its figures and what it leaves behind. run_error when this machine cannot execute
// the job; input_error when the weights of the scenario do not go with its model, or a checkpoint cannot go
// where it says.
StartedExecutor start_host(const Job& job, const Layout& layout, Recorder& recorder, const HostRun& request);

// input_error when a run that only simulates is asked for what is computed: a checkpoint, a dump of
// activations.
void require_nothing_computed(const Job& job, const HostRun& request);

}  // namespace moebius
