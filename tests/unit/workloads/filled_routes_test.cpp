// Routes whose sources fill buffers of a capacity, and capacities of a source's single sequences.
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/routing/expert_loads.h"
#include "workloads/routing/routing.h"

using namespace moebius;

namespace {

// Four ranks on two nodes, two of eight experts on each, which are not asked for alike.
RouteSpec limited_to_30() {
  return {.popularity = {.kind = PopularityKind::kZipf, .exponent = 1},
          .ranks = 4,
          .ranks_per_node = 2,
          .experts = 8,
          .active = 2,
          .tokens = 100,
          .capacity = 30};
}

}  // namespace

TEST_CASE("filled buffers are equal for all experts and pairs of ranks, whoever is chosen") {
  RouteSpec spec = limited_to_30();
  const Route came(spec);
  spec.filled = true;
  const Route route(spec);
  std::int64_t kept = 0;
  for (int rank = 0; rank < 4; ++rank) {
    kept += came.rows_of_rank(rank);
    CHECK(route.rows_of_rank(rank) == 4 * 2 * 30);
    CHECK(route.received_tokens(rank) == 4 * 2 * 30);
    CHECK(route.sent_tokens(rank) == 4 * 2 * 30);
    for (int other = 0; other < 4; ++other) CHECK(route.tokens_between(rank, other) == 2 * 30);
    for (int node = 0; node < 2; ++node) CHECK(route.tokens_to_node(rank, node) == 2 * 2 * 30);
    CHECK(route.choices(rank) == came.choices(rank));  // the same tokens are dropped
  }
  CHECK(route.max_rows_of_rank() == 240);
  CHECK(came.padding() == 0);
  CHECK(route.padding() == 4 * 240 - kept);
  CHECK(route.dropped() == came.dropped());
}

TEST_CASE("ranks that share experts get the buffers of all of them") {
  RouteSpec spec = limited_to_30();
  spec.filled = true;
  spec.gathered = 2;
  CHECK(Route(spec).max_rows_of_rank() == 2 * 240);
  CHECK(Route(spec).max_received_tokens() == 2 * 240);
}

TEST_CASE("what stays on its rank is sorted into buffers where it stands") {
  RouteSpec spec = limited_to_30();
  spec.ranks = 1;
  const Route came(spec);
  spec.filled = true;
  CHECK(Route(spec).max_rows_of_rank() == 8 * 30);
  CHECK(Route(spec).max_received_tokens() == came.max_received_tokens());
}

TEST_CASE("each run of a source's tokens has a capacity of its own") {
  RouteSpec spec = limited_to_30();
  const Route free({.popularity = spec.popularity, .ranks = 4, .ranks_per_node = 2, .experts = 8, .active = 2,
                    .tokens = 100});
  spec.capacity = 15;
  spec.capacity_groups = 2;
  const Route route(spec);
  CHECK(route.dropped() > 0);
  for (int source = 0; source < 4; ++source) {
    const auto all = free.choices(source), limited = route.choices(source);
    std::vector<int> taken(8);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == all.size() / 2) taken.assign(8, 0);
      REQUIRE(chosen_expert(limited[i]) == all[i]);
      CHECK((limited[i] >= 0) == (++taken[all[i]] <= 15));
    }
  }
  spec.filled = true;
  CHECK(Route(spec).max_rows_of_rank() == 240);
}

TEST_CASE("loads say what share of experts' rows is padding, of which nobody has more") {
  RouteSpec spec = limited_to_30();
  ExpertLoads came, filled;
  came.add(Route(spec));
  spec.filled = true;
  const Route route(spec);
  filled.add(route);
  CHECK(came.padding_share() == 0);
  CHECK(filled.padding_share() == Approx(route.padding() / 960.0));
  CHECK(filled.dropped_share() == Approx(came.dropped_share()));
  CHECK(filled.layers()[0].busiest_expert == 1);
  CHECK(filled.layers()[0].busiest_rank == 1);
}
