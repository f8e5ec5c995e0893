// Routes of tokens that have a name: what each chooses is its own, wherever it stands.
#include <catch2/catch.hpp>

#include <map>
#include <numeric>

#include "workloads/routing/routing.h"

using namespace moebius;

namespace {

RouteSpec spec_of(int ranks, std::vector<TokenRun> runs, double exponent = 0.7) {
  RouteSpec spec{.seed = 3,
                 .popularity = {PopularityKind::kZipf, exponent, false},
                 .ranks = ranks,
                 .ranks_per_node = 8,
                 .experts = 16,
                 .active = 4,
                 .groups = 4,
                 .active_groups = 2,
                 .tokens = 0};
  std::map<int, int> count;
  for (const TokenRun& run : runs) spec.tokens = std::max(spec.tokens, count[run.source] += run.count);
  spec.runs = TokenRuns(std::move(runs));
  return spec;
}

std::vector<std::int32_t> part(const std::vector<std::int32_t>& choices, int first, int count) {
  return {choices.begin() + first * 4, choices.begin() + (first + count) * 4};
}

}  // namespace

TEST_CASE("a token chooses the same experts in any batch and on any number of ranks") {
  const Route alone(spec_of(1, {{0, 7, 0, 10}}));
  const Route batched(
      spec_of(2, {{0, 2, 5, 3}, {1, 9, 0, 2}, {1, 7, 4, 6}}));  // from position 4 on, behind two others
  CHECK(part(batched.choices(1), 2, 6) == part(alone.choices(0), 4, 6));
  RouteSpec later = spec_of(1, {{0, 7, 0, 10}});
  later.step = 8;  // nor does the iteration count
  CHECK(Route(later).choices(0) == alone.choices(0));
}

TEST_CASE("other layers and requests and positions choose other experts") {
  RouteSpec spec = spec_of(1, {{0, 7, 0, 50}});
  const auto first = Route(spec).choices(0);
  spec.layer = 1;
  CHECK(Route(spec).choices(0) != first);
  CHECK(Route(spec_of(1, {{0, 8, 0, 50}})).choices(0) != first);
  CHECK(part(first, 0, 10) != part(first, 10, 10));
}

// Source 0 has 3 tokens, source 1 has 8, source 2 none: 11 tokens of 4 experts each.
TEST_CASE("sources have as many tokens as their runs") {
  for (const double exponent : {0.7, -1.0}) {
    RouteSpec spec = spec_of(4, {{0, 2, 5, 3}, {1, 9, 0, 2}, {1, 7, 4, 6}});
    if (exponent < 0) spec.popularity = {};  // balanced: dealt, by count
    const Route route(spec);
    CHECK(route.tokens_of(0) == 3);
    CHECK(route.tokens_of(1) == 8);
    CHECK(route.tokens_of(2) == 0);
    CHECK(route.choices(0).size() == 3 * 4);
    CHECK(route.choices(1).size() == 8 * 4);
    CHECK(route.choices(2).empty());
    int rows = 0;
    for (int rank = 0; rank < 4; ++rank) rows += route.rows_of_rank(rank);
    CHECK(rows == 11 * 4);
    CHECK(route.max_received_tokens() <= 11);
  }
}

TEST_CASE("specifications with equal runs are equal") {
  CHECK(spec_of(1, {{0, 7, 0, 10}}) == spec_of(1, {{0, 7, 0, 10}}));
  CHECK_FALSE(spec_of(1, {{0, 7, 0, 10}}) == spec_of(1, {{0, 7, 1, 10}}));
}
