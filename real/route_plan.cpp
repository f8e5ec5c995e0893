#include "real/route_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

struct Copy {
  std::int32_t row, slot;
};

// Walks the tokens of one source: calls arrive(token) for each that uses an expert of `member`, then
// copy(slot, local expert).
template <class Arrive, class Take>
void walk(const std::vector<std::int32_t>& choices, int active, int first_expert, int experts,
          const Arrive& arrive, const Take& take) {
  for (std::size_t token = 0; token * active < choices.size(); ++token) {
    bool arrived = false;
    for (int slot = 0; slot < active; ++slot) {
      const int local = choices[token * active + slot] - first_expert;
      if (local < 0 || local >= experts) continue;
      if (!arrived) arrive(static_cast<std::int32_t>(token));
      arrived = true;
      take(slot, local);
    }
  }
}

std::vector<std::int32_t> places_of(const Route& route, int source) {
  return route.spec().placed ? route.chosen_slots(source) : route.choices(source);
}

void check_counts(const Route& route, int member, const RoutePlan& plan) {
  CHECK(plan.received == route.received_tokens(member),
        fmt::format("member {} receives {} rows, the route says {}", member, plan.received,
                    route.received_tokens(member)));
  const int experts = member < plan.without_experts ? 0 : route.experts_per_rank();
  for (int expert = 0; expert < experts; ++expert) {
    CHECK(plan.expert_rows[expert] == route.rows(member, expert),
          fmt::format("expert {} of member {} gets {} rows, the route says {}", expert, member,
                      plan.expert_rows[expert], route.rows(member, expert)));
  }
}

}  // namespace

RoutePlan plan_route(const Route& route, int member) {
  const RouteSpec& spec = route.spec();
  const int per_rank = route.experts_per_rank();
  RoutePlan plan;
  plan.active = spec.active;
  plan.experts_per_rank = per_rank;
  plan.without_experts = spec.without_experts;
  plan.choices = route.choices(member);
  plan.slots = route.chosen_slots(member);
  plan.sent.resize(spec.ranks);
  const auto held_by = [&](int rank) { return rank < spec.without_experts ? 0 : per_rank; };
  for (int to = 0; to < spec.ranks; ++to) {
    walk(
        plan.places(), spec.active, route.first_expert(to), held_by(to),
        [&](std::int32_t token) { plan.sent[to].push_back(token); }, [](int, int) {});
  }
  std::vector<std::vector<Copy>> copies(per_rank);
  for (int i = 0; i < spec.ranks * spec.gathered; ++i) {
    const int source = i % spec.ranks;
    const std::int32_t before = plan.received;
    walk(
        source == member ? plan.places() : places_of(route, source), spec.active, route.first_expert(member),
        held_by(member), [&](std::int32_t) { ++plan.received; },
        [&](int slot, int expert) {
          copies[expert].push_back({plan.received - 1, slot});
        });
    plan.received_from.push_back(plan.received - before);
  }
  for (const std::vector<Copy>& of_expert : copies) {
    plan.expert_rows.push_back(static_cast<std::int32_t>(of_expert.size()));
    for (const Copy& copy : of_expert) {
      plan.copy_row.push_back(copy.row);
      plan.copy_slot.push_back(copy.slot);
    }
  }
  check_counts(route, member, plan);
  return plan;
}

}  // namespace moebius
