// Where a service places its experts, and how their popularity changes: `expert_balance` of its plan,
// `experts` of its workload.
#pragma once

#include "workloads/scenario/scenario.h"
#include "workloads/scenario/section.h"

namespace moebius {

void read_expert_balance(Section section, ExpertBalancePlan& plan);

// Popularity and its course.
void read_expert_traffic(Section section, Popularity& popularity, ExpertDrift& drift);

// Slots of the phases; what does not go together is input_error. After set_phases().
void set_expert_slots(Scenario& scenario, const Document& document);

}  // namespace moebius
