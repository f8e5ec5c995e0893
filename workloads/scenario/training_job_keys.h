// Keys `job`, `lengths`, `prompt_share`, `rl` and `lora` of a training workload: what kind of training it is.
#pragma once

#include "workloads/scenario/scenario.h"

namespace moebius {

void read_training_job(Section& workload, Scenario& scenario);

// Their relations to the other keys; the rest of the scenario has been checked.
void check_training_job(const Scenario& scenario, const Document& document);

}  // namespace moebius
