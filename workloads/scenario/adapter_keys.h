// Key `lora` of a training workload: low-rank adapters beside a frozen model.
#pragma once

#include "workloads/scenario/scenario.h"

namespace moebius {

void read_adapters(Section& workload, Adapters& adapters);

// Relations to the other keys; the rest of the scenario has been checked.
void check_adapters(const Scenario& scenario, const Document& document);

}  // namespace moebius
