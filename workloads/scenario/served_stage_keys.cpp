#include "workloads/scenario/served_stage_keys.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/scenario/service_pool_keys.h"

namespace moebius {
namespace {

// Why this phase cannot have several stages; "": it can.
std::string problem_of(const Scenario& scenario, const ServicePhase& phase) {
  const ServicePlan& service = scenario.service;
  const ServingPlan& plan = phase.plan;
  if (plan.pp > scenario.model.layers)
    return fmt::format("{} stages for the {} layers of {}: expected at most as many", plan.pp,
                       scenario.model.layers, scenario.model.id);
  if (phase.expert_pool >= 0) return "several stages with experts on devices of their own: expected 1";
  if (plan.cp > 1)
    return fmt::format("several stages with prompts that {} ranks cut: expected 1, or cp 1", plan.cp);
  if (service.speculation.drafts > 0)
    return "several stages with guesses, which the last stage would make for the first: expected 1, or mtp 0";
  if (service.tiers.on())
    return "several stages with tiers below device memory, which hold blocks of all layers: expected 1";
  if (service.encoder.given() && !service.encoder.apart)
    return "several stages with an encoder on the same devices: expected 1, or separation/encoder true";
  if (plan.ep > 1 && service.experts.policy != BalancePolicy::kNone)
    return "several stages with experts that are placed anew: expected 1, or expert_balance policy \"none\"";
  if (plan.ep > 1 && scenario.traffic.drift.changes())
    return "several stages with experts of ranks whose popularity changes with time: expected 1";
  return "";
}

}  // namespace

const char* stages_given(const ServicePlan& service) {
  if (service.decode.pp > 1) return "/plan/decode/pp";
  if (service.prefill.pp > 1) return "/plan/prefill/pp";
  const bool of_pools = std::any_of(service.pools.begin(), service.pools.end(),
                                    [](const PoolKeys& keys) { return keys.phase.pp > 1; });
  return of_pools ? "/plan/pools" : "";
}

void check_served_stages(const Scenario& scenario, const Document& document) {
  const std::vector<ServicePhase>& phases = scenario.service.phases;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (phases[i].plan.pp == 1) continue;
    const std::string problem = problem_of(scenario, phases[i]);
    if (!problem.empty()) place_at(document, pointer_of_phase(scenario, i) + "/pp").fail(problem);
  }
}

}  // namespace moebius
