// Key `shared_experts` of a phase's expert parallelism: where its shared experts are computed.
#pragma once

#include <optional>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

std::optional<SharedExperts> read_shared_experts(Section& experts);  // nothing: not given

// One pool does both phases: what prefill says must be what decode says.
void require_same_shared(Section& prefill, const PhaseKeys& found, const PhaseKeys& decode);
// Into the plan of a phase; input_error where the model's shared experts cannot be computed so.
void set_shared_experts(const Scenario& scenario, const PhaseKeys& keys, ServingPlan& plan,
                        const Place& place);
// Where every op is carried out, each rank computes its own.
void check_carried_shared_experts(const ServicePlan& service, const Document& document);

// Slots of a layer on the ranks of a phase, and how many of them are copies on every rank; `placed`: where
// experts are placed by load, else nothing. Zero slots: one an expert.
void set_slots(ServingPlan& plan, const Experts& experts, const ExpertBalancePlan& placed);
// That they divide over the ranks.
void check_slots(const ServingPlan& plan, const Model& model, const Place& degree);

}  // namespace moebius
