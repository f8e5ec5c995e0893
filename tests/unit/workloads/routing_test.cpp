#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <catch2/catch.hpp>

#include "workloads/routing/routing.h"

using namespace moebius;

namespace {

// DeepSeek-V3's router on 64 ranks of 8 a node, with few tokens.
RouteSpec deepseek() {
  return {.ranks = 64,
          .ranks_per_node = 8,
          .experts = 256,
          .active = 8,
          .groups = 8,
          .active_groups = 4,
          .tokens = 32};
}

Popularity zipf(double exponent) {
  return {.kind = PopularityKind::kZipf, .exponent = exponent};
}

// Everything a route says about itself, counted again from its choices.
void require_counts_follow_from_choices(const Route& route) {
  const RouteSpec& s = route.spec();
  std::vector<int> rows(s.experts);
  for (int source = 0; source < s.ranks; ++source) {
    const std::vector<std::int32_t> choices = route.choices(source);
    REQUIRE(choices.size() == static_cast<std::size_t>(s.tokens * s.active));
    std::map<int, int> to_rank, to_node;
    for (int token = 0; token < s.tokens; ++token) {
      const auto first = choices.begin() + token * s.active, last = first + s.active;
      REQUIRE(std::is_sorted(first, last));
      REQUIRE(std::adjacent_find(first, last) == last);
      REQUIRE(*first >= 0);
      REQUIRE(*(last - 1) < s.experts);
      std::set<int> ranks, nodes, groups;
      for (auto e = first; e != last; ++e) {
        ++rows[*e];
        ranks.insert(*e / route.experts_per_rank());
        nodes.insert(*e / route.experts_per_rank() / s.ranks_per_node);
        groups.insert(*e / (s.experts / s.groups));
      }
      REQUIRE(static_cast<int>(groups.size()) <= s.active_groups);
      if (s.popularity.kind == PopularityKind::kBalanced)
        REQUIRE(static_cast<int>(groups.size()) == s.active_groups);
      for (const int rank : ranks) ++to_rank[rank];
      for (const int node : nodes) ++to_node[node];
    }
    for (int rank = 0; rank < s.ranks; ++rank) REQUIRE(route.tokens_between(source, rank) == to_rank[rank]);
    for (int node = 0; node < route.nodes(); ++node)
      REQUIRE(route.tokens_to_node(source, node) == to_node[node]);
  }
  for (int e = 0; e < s.experts; ++e) {
    REQUIRE(route.rows(e / route.experts_per_rank(), e % route.experts_per_rank()) == rows[e]);
  }
}

}  // namespace

TEST_CASE("what a route counts is what its choices say") {
  RouteSpec spec = deepseek();
  SECTION("balanced, limited to groups") {
    require_counts_follow_from_choices(Route(spec));
  }
  SECTION("balanced, unlimited") {
    spec.groups = spec.active_groups = 1;
    require_counts_follow_from_choices(Route(spec));
  }
  SECTION("by popularity, limited to groups") {
    spec.popularity = zipf(1);
    require_counts_follow_from_choices(Route(spec));
  }
  SECTION("by popularity, unlimited") {
    spec.popularity = zipf(1);
    spec.groups = spec.active_groups = 1;
    require_counts_follow_from_choices(Route(spec));
  }
  SECTION("so skewed that the last expert of a token is almost never drawn") {
    spec.popularity = zipf(12);
    require_counts_follow_from_choices(Route(spec));
  }
  SECTION("a last node that is not full") {
    spec.ranks = 4;
    spec.ranks_per_node = 3;
    require_counts_follow_from_choices(Route(spec));
  }
}

TEST_CASE("every copy of every token arrives once") {
  for (const double exponent : {0.0, 0.8, 2.0}) {
    RouteSpec spec = deepseek();
    if (exponent > 0) spec.popularity = zipf(exponent);
    const Route route(spec);
    std::int64_t rows = 0;
    int busiest = 0, most_tokens = 0;
    for (int rank = 0; rank < spec.ranks; ++rank) {
      rows += route.rows_of_rank(rank);
      busiest = std::max(busiest, route.rows_of_rank(rank));
      most_tokens = std::max(most_tokens, route.received_tokens(rank));
      for (int source = 0; source < spec.ranks; ++source)
        REQUIRE(route.tokens_between(source, rank) <= spec.tokens);
    }
    REQUIRE(rows == std::int64_t{64} * 32 * 8);
    REQUIRE(route.max_rows_of_rank() == busiest);
    REQUIRE(route.max_received_tokens() == most_tokens);
  }
}

TEST_CASE("balanced choices give every expert its exact share when the numbers divide") {
  // 64 ranks x 32 tokens x 8 choices / 256 experts = 64 rows each.
  const RouteSpec spec = deepseek();
  const Route route(spec);
  for (int e = 0; e < spec.experts; ++e) REQUIRE(route.rows(e / 4, e % 4) == 64);
  // 8 groups on 8 nodes, 4 of them a token: half of the tokens of each source go to each node.
  for (int source = 0; source < spec.ranks; ++source) {
    for (int node = 0; node < 8; ++node) REQUIRE(route.tokens_to_node(source, node) == 16);
  }
}

TEST_CASE("few tokens from many sources are balanced together") {
  // Decoding: 1 token on each of 64 ranks, 64 * 8 / 256 = 2 rows for each expert.
  RouteSpec spec = deepseek();
  spec.tokens = 1;
  const Route route(spec);
  for (int e = 0; e < spec.experts; ++e) REQUIRE(route.rows(e / 4, e % 4) == 2);
}

TEST_CASE("balanced choices differ by two rows at most when the numbers do not divide") {
  // 3 groups a token of 4, 5 choices: 2 + 2 + 1 experts; 7 * 11 * 5 = 385 rows on 28 experts.
  const Route route({.ranks = 7, .experts = 28, .active = 5, .groups = 4, .active_groups = 3, .tokens = 11});
  require_counts_follow_from_choices(route);
  for (int group = 0; group < 4; ++group) {
    int least = 1 << 30, most = 0;
    for (int e = group * 7; e < group * 7 + 7; ++e) {
      least = std::min(least, route.rows(e / 4, e % 4));
      most = std::max(most, route.rows(e / 4, e % 4));
    }
    REQUIRE(most - least <= 1);
  }
}

TEST_CASE("balanced choices are equal between groups whose shares are not whole, too") {
  // 8 choices of 3 groups are 3 + 3 + 2: in a round of 8 tokens each group stands in 3 hands and gives 8.
  RouteSpec spec = deepseek();
  spec.active_groups = 3;
  const Route route(spec);
  require_counts_follow_from_choices(route);
  for (int e = 0; e < spec.experts; ++e) REQUIRE(route.rows(e / 4, e % 4) == 64);
}

TEST_CASE("each group gives the larger shares as often as any other, whatever numbers have in common") {
  // Groups and hands with a common divisor: the places of a group in a hand must change between rounds. 8
  // groups of 8 experts, 6 or 4 to a hand, 7 choices; 24 tokens, 3 rounds: 24 * 7 = 168 rows, 21 of each
  // group.
  for (const int active_groups : {4, 6}) {
    const Route route(
        {.ranks = 8, .experts = 64, .active = 7, .groups = 8, .active_groups = active_groups, .tokens = 3});
    require_counts_follow_from_choices(route);
    for (int group = 0; group < 8; ++group) REQUIRE(route.rows_of_rank(group) == 21);
  }
}

TEST_CASE("experts are chosen as often as their popularity says") {
  // One choice a token: the counts are multinomial with p = r^-1 / sum. The statistic sum((count - n p)^2 /
  // (n p)) has mean 63 and variance about 2 * 63 for 64 experts, so 63 + 6 * sqrt(126) = 130 is passed once
  // in 10^7 seeds or less.
  RouteSpec spec{.popularity = zipf(1), .ranks = 64, .experts = 64, .active = 1, .tokens = 2000};
  const Route route(spec);
  std::vector<double> counts, share;
  for (int e = 0; e < 64; ++e) counts.push_back(route.rows(e, 0));
  std::sort(counts.rbegin(), counts.rend());
  double sum = 0, statistic = 0;
  for (int r = 1; r <= 64; ++r) sum += 1.0 / r;
  for (int r = 1; r <= 64; ++r) {
    const double expected = 64 * 2000 / (r * sum);
    statistic += (counts[r - 1] - expected) * (counts[r - 1] - expected) / expected;
  }
  REQUIRE(statistic < 130);
}

TEST_CASE("choices without replacement follow from the popularity of what is left") {
  // Weights 1, 1/2, 1/3, two distinct choices. P(first, then second) = w1/W * w2/(W - w1), with W = 11/6:
  // {1,2}: 6/11 * 3/5 + 3/11 * 6/8 = 0.5318; {1,3}: 6/11 * 2/5 + 2/11 * 6/9 = 0.3394; {2,3}: the rest,
  // 0.1288.
  const int tokens = 40000;
  const Route route({.popularity = zipf(1), .ranks = 1, .experts = 3, .active = 2, .tokens = tokens});
  std::map<std::pair<int, int>, int> pairs;
  const std::vector<std::int32_t> choices = route.choices(0);
  for (int token = 0; token < tokens; ++token) ++pairs[{choices[2 * token], choices[2 * token + 1]}];
  std::vector<double> shares;
  for (const auto& [pair, count] : pairs) shares.push_back(static_cast<double>(count) / tokens);
  std::sort(shares.rbegin(), shares.rend());
  REQUIRE(shares.size() == 3);
  REQUIRE(shares[0] == Approx(0.5318).margin(0.012));  // 5 standard deviations of a share of 40,000
  REQUIRE(shares[1] == Approx(0.3394).margin(0.012));
  REQUIRE(shares[2] == Approx(0.1288).margin(0.012));
}

TEST_CASE("very skewed popularity keeps the law of what is left") {
  // Weights 1 and 2^-12, 3^-12: the first choice is expert 1 but for once in 4096, the second then expert 2
  // in all but (2/3)^12 = 0.77% of the tokens: drawing until something new comes would take thousands of
  // draws each.
  const int tokens = 40000;
  const Route route({.popularity = zipf(12), .ranks = 1, .experts = 3, .active = 2, .tokens = tokens});
  std::vector<double> rows;
  for (int e = 0; e < 3; ++e) rows.push_back(static_cast<double>(route.rows(0, e)) / tokens);
  std::sort(rows.begin(), rows.end());
  REQUIRE(rows[0] == Approx(0.0077).margin(0.0025));
  REQUIRE(rows[2] == Approx(1).margin(0.0002));
}

TEST_CASE("groups are chosen in proportion to their weight") {
  // Four groups of one expert, one group a token: the frequencies of single experts again.
  const Route grouped({.popularity = zipf(1),
                       .ranks = 1,
                       .experts = 4,
                       .active = 1,
                       .groups = 4,
                       .active_groups = 1,
                       .tokens = 50000});
  std::vector<double> shares;
  for (int e = 0; e < 4; ++e) shares.push_back(grouped.rows(0, e) / 50000.0);
  std::sort(shares.rbegin(), shares.rend());
  const double sum = 1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4;
  for (int r = 1; r <= 4; ++r) REQUIRE(shares[r - 1] == Approx(1 / (r * sum)).margin(0.012));
}

TEST_CASE("the same key draws the same tokens, another key others") {
  for (const Popularity& popularity : {Popularity{}, zipf(1)}) {
    RouteSpec spec = deepseek();
    spec.popularity = popularity;
    const Route route(spec), again(spec);
    // In any order, as often as one likes.
    const auto last = again.choices(63), first = again.choices(0);
    REQUIRE(route.choices(0) == first);
    REQUIRE(route.choices(63) == last);
    REQUIRE(route.choices(63) == last);
    REQUIRE(first != last);
    const auto differs = [&](auto change) {
      RouteSpec other = spec;
      change(other);
      return Route(other).choices(0) != first;
    };
    REQUIRE(differs([](RouteSpec& s) { s.seed = 2; }));
    REQUIRE(differs([](RouteSpec& s) { s.step = 1; }));
    REQUIRE(differs([](RouteSpec& s) { s.microbatch = 0; }));
    REQUIRE(differs([](RouteSpec& s) { s.layer = 1; }));
  }
}

TEST_CASE("popular experts stay popular over steps and microbatches, not over layers") {
  const auto most_popular = [](int step, int microbatch, int layer) {
    const Route route({.step = step,
                       .microbatch = microbatch,
                       .layer = layer,
                       .popularity = zipf(2),
                       .ranks = 1,
                       .experts = 64,
                       .active = 1,
                       .tokens = 1000});
    int best = 0;
    for (int e = 1; e < 64; ++e) best = route.rows(0, e) > route.rows(0, best) ? e : best;
    return best;
  };
  REQUIRE(most_popular(0, -1, 0) == most_popular(5, 3, 0));
  std::set<int> of_layers;
  for (int layer = 0; layer < 8; ++layer) of_layers.insert(most_popular(0, -1, layer));
  REQUIRE(of_layers.size() > 3);  // 8 draws of 64
}

TEST_CASE("random bits depend on every part of their key, and on its place") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t part = 0; part < 100; ++part) {
    seen.insert(random_bits(part, 0));
    seen.insert(random_bits(0, part + 100));
    seen.insert(random_bits(0, 0, part + 100));
    seen.insert(random_bits(0, 0, 0, part + 100));
    seen.insert(random_bits(0, 0, 0, 0, part + 100));
  }
  REQUIRE(seen.size() == 500);
  REQUIRE(random_bits(1, 2, 3, 4, 5) == random_bits(1, 2, 3, 4, 5));
}

TEST_CASE("unit numbers stand from 0 to below 1 and average one half") {
  REQUIRE(random_unit(0) == 0);
  REQUIRE(random_unit(~std::uint64_t{0}) < 1);
  double sum = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) sum += random_unit(random_bits(1, i));
  REQUIRE(sum / 10000 == Approx(0.5).margin(0.015));  // 5 standard deviations: 5 / sqrt(12 * 10000)
}
