// /workload/input: how a step's batch comes from storage to the ranks that read it.
#pragma once

#include "workloads/scenario/scenario.h"

namespace moebius {

void read_input(Section& workload, Scenario& scenario);

}  // namespace moebius
