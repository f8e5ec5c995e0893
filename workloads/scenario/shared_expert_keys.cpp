#include "workloads/scenario/shared_expert_keys.h"

#include <array>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr std::array kSharedExperts{
    Named<SharedExperts>{"separate", SharedExperts::kSeparate,
                         "by each rank for its own tokens, in products of their own"},
    Named<SharedExperts>{"fused", SharedExperts::kFused,
                         "by each rank for its own tokens, in the grouped products of the routed experts"},
    Named<SharedExperts>{"routed", SharedExperts::kRouted,
                         "where they are placed, as routed experts that every token uses"},
};

SharedExperts of(const PhaseKeys& keys) {
  return keys.shared_experts.value_or(SharedExperts::kSeparate);
}

std::string_view name_of(SharedExperts value) {
  for (const Named<SharedExperts>& row : kSharedExperts)
    if (row.value == value) return row.name;
  return "";
}

}  // namespace

std::optional<SharedExperts> read_shared_experts(Section& experts) {
  const bool given = experts.given("shared_experts");
  const auto value = experts.choice<SharedExperts>("shared_experts", kSharedExperts, SharedExperts::kSeparate,
                                                   "where shared experts are computed");
  return given ? std::optional(value) : std::nullopt;
}

void require_same_shared(Section& prefill, const PhaseKeys& found, const PhaseKeys& decode) {
  if (!found.shared_experts || *found.shared_experts == of(decode)) return;
  prefill.place_of("ep").fail(
      fmt::format("shared_experts \"{}\" differs from decode's \"{}\": one pool does both",
                  name_of(*found.shared_experts), name_of(of(decode))));
}

void set_shared_experts(const Scenario& scenario, const PhaseKeys& keys, ServingPlan& plan,
                        const Place& place) {
  plan.shared_experts = of(keys);
  if (plan.shared_experts == SharedExperts::kSeparate) return;
  const auto fail = [&](const std::string& why) {
    place.fail(
        fmt::format("shared_experts \"{}\": {}; expected \"separate\"", name_of(plan.shared_experts), why));
  };
  const Experts& experts = scenario.model.experts;
  if (experts.routed == 0 || experts.shared == 0)
    fail(fmt::format("{} has no shared experts", scenario.model.id));
  if (experts.shared_gate)
    fail(fmt::format("those of {} count times a gate of their own, which grouped products do not apply",
                     scenario.model.id));
  if (experts.shared_width != experts.shared * experts.width)
    fail(fmt::format(
        "one product holds experts of one width, and the {} of {} are {} wide in all, routed ones "
        "{} each",
        experts.shared, scenario.model.id, experts.shared_width, experts.width));
  if (!keys.expert_pool.empty())
    fail(fmt::format("experts stand on pool \"{}\", and ranks of attention keep the shared ones",
                     keys.expert_pool));
  const std::shared_ptr<const Model>& draft = scenario.service.engine.draft_model;
  if (draft && draft->experts.routed > 0) fail(fmt::format("{} guesses with experts of its own", draft->id));
}

void check_carried_shared_experts(const ServicePlan& service, const Document& document) {
  if (!service.full_steps) return;
  const auto check = [&](const PhaseKeys& keys, const std::string& phase) {
    if (of(keys) != SharedExperts::kSeparate)
      place_at(document, phase + "/ep/shared_experts")
          .fail(fmt::format("\"{}\" is not carried out op by op: expected \"separate\", or /plan/steps "
                            "\"surface\"",
                            name_of(of(keys))));
  };
  check(service.prefill, "/plan/prefill");
  check(service.decode, "/plan/decode");
  for (std::size_t i = 0; i < service.pools.size(); ++i)
    check(service.pools[i].phase, fmt::format("/plan/pools/{}", i));
}

void set_slots(ServingPlan& plan, const Experts& experts, const ExpertBalancePlan& placed) {
  const bool fused = plan.shared_experts == SharedExperts::kFused;
  const int among = plan.shared_experts == SharedExperts::kRouted ? experts.shared : 0;
  plan.shared_copies = fused && plan.ep > 1 ? plan.ep * experts.shared : 0;
  if (placed.policy != BalancePolicy::kNone && plan.ep > 1)
    plan.expert_slots = placed.slots(experts.routed + among, plan.ep);
  if (plan.shared_copies > 0)
    plan.expert_slots = (plan.expert_slots > 0 ? plan.expert_slots : experts.routed) + plan.shared_copies;
}

void check_slots(const ServingPlan& plan, const Model& model, const Place& degree) {
  const Experts& experts = model.experts;
  const bool among = plan.shared_experts == SharedExperts::kRouted;
  const int slots = plan.expert_slots > 0 ? plan.expert_slots : experts.routed + (among ? experts.shared : 0);
  if (slots % plan.ep == 0) return;
  degree.fail(fmt::format("degree {} does not divide the {} experts{} of {}", plan.ep,
                          slots - plan.shared_copies, among ? ", shared ones among them," : "", model.id));
}

}  // namespace moebius
