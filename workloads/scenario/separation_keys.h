// Keys of a serving plan that say what stands apart: attention from experts, encoders from the language
// model.
#pragma once

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

// `separation` of a plan, and `encoder`.
void read_separation(Section& plan, ServicePlan& service);
// Of a phase: `pool` of its attention; `experts` and `microbatches`.
void read_separate_experts(Section& phase, Section& attention, PhaseKeys& keys);

// The index of a pool by name; one without a name where there is only one.
int pool_named(const Scenario& scenario, const std::string& name, const Place& place);

// Puts the experts of a phase on their pool, as its keys say; its attention stands on phase.pool.
void set_experts_apart(const Scenario& scenario, const PhaseKeys& keys, ServicePhase& phase,
                       const Place& place);
// The same for a batch whose every op is carried out: the pools of the cluster are the attention's and
// theirs.
void place_separate_experts(Scenario& scenario, const Document& document);
// That what stands apart stands somewhere, and nothing twice.
void check_separation(Scenario& scenario, const Document& document);

}  // namespace moebius
