// Experts that the ranks of several replicas share by columns: ep/tp of a phase.
#pragma once

#include "workloads/scenario/scenario_parts.h"
#include "workloads/scenario/section.h"
#include "workloads/serving/system/service_plan.h"

namespace moebius {

// `experts`: "ep" of a phase, whose other keys stand in `keys`.
void read_expert_columns(Section& experts, PhaseKeys& keys);
// With the degrees of attention and experts in `plan`.
void set_expert_columns(const PhaseKeys& keys, ServingPlan& plan, const Place& phase);
// What of the phase speaks of tokens that travel to whole experts.
void check_expert_columns(const PhaseKeys& keys, const ServingPlan& plan, const Place& phase);
// Replicas that share experts with each other become an instance, `dp` of which there are. Returns how many
// instances they are.
int set_instance(ServingPlan& plan, int dp, const Place& phase);

}  // namespace moebius
