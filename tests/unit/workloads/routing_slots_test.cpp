// Routes of experts that stand in slots, some of them several.
#include <cmath>
#include <memory>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/routing/routing.h"

using namespace moebius;

namespace {

// Eight experts in twelve slots on four ranks; expert 3 three times, expert 5 and 0 twice.
RouteSpec in_slots() {
  RouteSpec spec{.popularity = {.kind = PopularityKind::kZipf, .exponent = 0.8},
                 .ranks = 4,
                 .ranks_per_node = 2,
                 .experts = 8,
                 .active = 2,
                 .tokens = 4000};
  spec.placed = ExpertSlotsPtr(
      ExpertSlots{{3, 5, 0, 1, 3, 2, 4, 5, 6, 7, 0, 3}, {0.5, 0.25, 0.5, 1, 0.5, 1, 1, 0.75, 1, 1, 0.5, 0}});
  return spec;
}

}  // namespace

TEST_CASE("tokens choose experts as without slots, and a slot of each of them") {
  const RouteSpec spec = in_slots();
  RouteSpec plain = spec;
  plain.placed = {};
  const Route route(spec), by_number(plain);
  const std::vector<std::int32_t>& expert_of_slot = spec.placed->expert_of_slot;
  REQUIRE(route.experts_per_rank() == 3);
  std::vector<std::int32_t> rows(12, 0), copies(8, 0);
  for (int source = 0; source < 4; ++source) {
    const std::vector<std::int32_t> choices = route.choices(source), slots = route.chosen_slots(source);
    CHECK(choices == by_number.choices(source));
    REQUIRE(slots.size() == choices.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      REQUIRE(expert_of_slot[slots[i]] == choices[i]);
      ++rows[slots[i]], ++copies[choices[i]];
    }
  }
  for (int slot = 0; slot < 12; ++slot) CHECK(route.rows(slot / 3, slot % 3) == rows[slot]);
  CHECK(route.copies_of_experts() == copies);
  CHECK(by_number.copies_of_experts() == copies);
  CHECK(by_number.chosen_slots(0).empty());
}

TEST_CASE("slots of an expert take their shares of its tokens") {
  const Route route(in_slots());
  const double of_3 = route.copies_of_experts()[3], of_5 = route.copies_of_experts()[5];
  // Five standard deviations of a fair draw.
  CHECK(route.rows(0, 0) == Approx(of_3 / 2).margin(5 * std::sqrt(of_3 / 4)));
  CHECK(route.rows(0, 1) == Approx(of_5 / 4).margin(5 * std::sqrt(of_5 * 3 / 16)));
  CHECK(route.rows(3, 2) == 0);
}

TEST_CASE("runs choose by the popularity that each of them says") {
  RouteSpec spec;
  spec.popularity.kind = PopularityKind::kZipf;
  spec.popularity.exponent = 1;
  spec.ranks = spec.ranks_per_node = 2;
  spec.experts = 4;
  spec.active = 1;
  spec.tokens = 1000;
  spec.runs = TokenRuns({{0, 7, 0, 1000, 0}, {1, 8, 0, 1000, 1}});
  spec.popularities = {ExpertWeights({1, 0, 0, 0}), ExpertWeights({0, 0, 0, 1})};
  const Route route(spec);
  CHECK(route.rows(0, 0) == 1000);
  CHECK(route.rows(1, 1) == 1000);
  // What a token chooses does not depend on who else is there.
  RouteSpec alone = spec;
  alone.popularities = {ExpertWeights({1, 2, 3, 4})};
  alone.runs = TokenRuns({{1, 8, 0, 1000, 0}});
  RouteSpec beside = spec;
  beside.popularities = {ExpertWeights({4, 3, 2, 1}), ExpertWeights({1, 2, 3, 4})};
  CHECK(Route(alone).choices(1) == Route(beside).choices(1));
}

namespace {

// Two chosen experts of eight, and an expert that all use in four slots, one a rank.
RouteSpec with_shared(PopularityKind kind) {
  RouteSpec spec{.popularity = {.kind = kind, .exponent = 0.8},
                 .ranks = 4,
                 .ranks_per_node = 2,
                 .experts = 9,
                 .active = 3,
                 .always = 1,
                 .groups = 4,
                 .active_groups = 2,
                 .tokens = 50};
  spec.placed = ExpertSlotsPtr(
      ExpertSlots{{0, 1, 8, 2, 3, 8, 4, 5, 8, 6, 7, 8}, {1, 1, 0.25, 1, 1, 0.25, 1, 1, 0.25, 1, 1, 0.25}});
  return spec;
}

}  // namespace

TEST_CASE("an expert that every token uses changes nothing of what they choose") {
  for (const PopularityKind kind : {PopularityKind::kBalanced, PopularityKind::kZipf}) {
    const RouteSpec spec = with_shared(kind);
    RouteSpec chosen = spec;
    chosen.experts = 8, chosen.active = 2, chosen.always = 0;
    chosen.placed = {};
    const Route route(spec), alone(chosen);
    for (int source = 0; source < 4; ++source) {
      const std::vector<std::int32_t> all = route.choices(source), few = alone.choices(source);
      REQUIRE(all.size() == 150);
      for (std::size_t token = 0; token < 50; ++token) {
        CHECK(all[3 * token] == few[2 * token]);
        CHECK(all[3 * token + 1] == few[2 * token + 1]);
        CHECK(all[3 * token + 2] == 8);
      }
    }
    // Rows by slot are those of the choices; copies by expert those of the tokens, all of them for the last.
    std::vector<std::int32_t> copies = alone.copies_of_experts();
    copies.push_back(200);
    CHECK(route.copies_of_experts() == copies);
  }
}

TEST_CASE("slots of an expert that every token uses take tokens in turn, or those of their own rank") {
  RouteSpec spec = with_shared(PopularityKind::kBalanced);
  spec.runs = TokenRuns({{0, 0, 0, 50}, {1, 1, 0, 9}, {3, 3, 0, 41}});
  const Route in_turn(spec);
  spec.always_at_home = true;
  const Route at_home(spec);
  const int tokens[] = {50, 9, 0, 41};
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(in_turn.rows(rank, 2) == 25);
    CHECK(at_home.rows(rank, 2) == tokens[rank]);
    CHECK(at_home.tokens_between(rank, rank) == tokens[rank]);
    const std::vector<std::int32_t> slots = at_home.chosen_slots(rank);
    for (std::size_t i = 2; i < slots.size(); i += 3) CHECK(slots[i] == 3 * rank + 2);
  }
}
