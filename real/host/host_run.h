// The host executor as one that carries out jobs.
#pragma once

#include "real/companions.h"

namespace moebius {

// The executor for a job, its figures and what it leaves behind. run_error when this machine cannot execute
// the job; input_error when the weights of the scenario do not go with its model, or a checkpoint cannot go
// where it says.
StartedExecutor start_host(const Job& job, const Layout& layout, Recorder& recorder, const RealRun& request);

}  // namespace moebius
