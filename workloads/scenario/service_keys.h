// Keys of a serving plan that concern the system around its iterations: pools, router, scheduler, transfers.
#pragma once

#include <array>

#include "workloads/scenario/scenario_parts.h"
#include "workloads/serving/frameworks.h"

namespace moebius {

// `steps`, `separation`, `router`, `dp_balance`, `transfer`, `scheduler` of a plan.
// `cluster`: null where it is not known.
Time read_service_keys(Section& plan, const Framework& framework, const Cluster* cluster,
                       ServicePlan& service);
// `speculative` of decode.
void read_speculation(Section& decode, const ModelCatalog* models, ServicePlan& service);

inline constexpr std::array kBatchings{
    Named<BatchPolicy>{"prefill-first", BatchPolicy::kPrefillFirst,
                       "prompts have iterations of their own, before decoding goes on"},
    Named<BatchPolicy>{"mixed", BatchPolicy::kMixed,
                       "every running sequence decodes, and what the token budget leaves goes to prompts"},
};

// Requests that are there at once, on one pool: one instance, of which all ranks may be one.
bool is_batch(const Scenario& scenario);

// A batch whose requests do not all run on their own: as a service, it decides who joins an iteration.
bool joins_by_and_by(const Scenario& scenario);

// Fills service.phases from the keys of both phases, and checks that they fit on their pools; with full steps
// nothing.
void set_phases(Scenario& scenario, const Document& document);

}  // namespace moebius
