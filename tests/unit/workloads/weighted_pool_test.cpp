// Draws without replacement, against the chances computed pair by pair.
#include <cmath>
#include <map>
#include <utility>

#include <catch2/catch.hpp>

#include "workloads/routing/weighted_pool.h"

using namespace moebius;

namespace {

std::vector<WeightedItem> items_of(const std::vector<std::uint64_t>& weights, std::int32_t first = 0) {
  std::vector<WeightedItem> items;
  for (const std::uint64_t weight : weights)
    items.push_back({weight, first + static_cast<std::int32_t>(items.size())});
  return items;
}

OpenPool open(const WeightedPool& pool) {
  return OpenPool(pool);
}

// Ordered pairs drawn from `pools` against w1/W * w2/(W - w1). The statistic sum((count - n p)^2 / (n p)) has
// mean d and variance about 2 d for d degrees of freedom: d + 6 sqrt(2 d) is passed once in 10^7 seeds or
// less.
void require_law_of_pairs(const std::vector<WeightedPool>& pools, const std::vector<std::uint64_t>& weights) {
  const int draws = 200000;
  std::map<std::pair<int, int>, int> counts;
  RandomStream random(7);
  Taken taken(static_cast<std::int32_t>(weights.size()));
  for (int i = 0; i < draws; ++i) {
    std::vector<OpenPool> hand;
    for (const WeightedPool& pool : pools) hand.push_back(open(pool));
    std::int32_t pair[2];
    taken.next_token();
    take_items(random, hand, taken, 2, pair);
    REQUIRE(pair[0] != pair[1]);
    ++counts[{pair[0], pair[1]}];
  }
  double total = 0, statistic = 0, cells = 0;
  for (const std::uint64_t weight : weights) total += static_cast<double>(weight);
  for (std::size_t a = 0; a < weights.size(); ++a) {
    for (std::size_t b = 0; b < weights.size(); ++b) {
      if (a == b) continue;
      const double wa = static_cast<double>(weights[a]), wb = static_cast<double>(weights[b]);
      const double expected = draws * wa / total * wb / (total - wa);
      const double off = counts[{static_cast<int>(a), static_cast<int>(b)}] - expected;
      REQUIRE(expected > 5);
      statistic += off * off / expected;
      ++cells;
    }
  }
  REQUIRE(statistic < cells - 1 + 6 * std::sqrt(2 * (cells - 1)));
}

}  // namespace

TEST_CASE("even weights have no heads, and pairs follow the weights of what is left") {
  const std::vector<std::uint64_t> weights{5, 4, 3, 3, 2, 2, 1};
  const WeightedPool pool(items_of(weights), 2);
  REQUIRE(pool.heads().empty());
  REQUIRE(pool.rest_weight() == 20);
  require_law_of_pairs({pool}, weights);
}

TEST_CASE("the heaviest stand apart until the next ones hold three quarters of the rest at most") {
  // Pairs: 100 + 20 of 127 is more; without the 100, 20 + 2 of 27 is more; without the 20, 2 + 1 of 7 is not.
  const std::vector<std::uint64_t> weights{1, 20, 1, 1, 100, 2, 1, 1};
  const WeightedPool pool(items_of(weights), 2);
  REQUIRE(pool.heads().size() == 2);
  REQUIRE(pool.heads()[0].item == 4);
  REQUIRE(pool.heads()[1].item == 1);
  REQUIRE(pool.heads_weight() == 120);
  REQUIRE(pool.rest_weight() == 7);
  require_law_of_pairs({pool}, weights);
}

TEST_CASE("several pools are drawn from as one") {
  const std::vector<std::uint64_t> weights{3, 50, 4, 4, 4, 4, 2, 9, 2, 2, 2};
  const std::vector<WeightedPool> pools{
      WeightedPool(items_of({3, 50}), 2),             // heads only
      WeightedPool(items_of({4, 4, 4, 4}, 2), 2),     // rest only
      WeightedPool(items_of({2, 9, 2, 2, 2}, 6), 1),  // both
  };
  REQUIRE(pools[0].rest_weight() == 0);
  REQUIRE(pools[1].heads().empty());
  require_law_of_pairs(pools, weights);
}

TEST_CASE("all items of a pool can be taken, however unlikely the last ones are") {
  std::vector<std::uint64_t> weights;
  for (int i = 0; i < 60; ++i) weights.push_back(std::uint64_t{1} << i);  // each more than all lighter ones
  const WeightedPool pool(items_of(weights), 60);
  RandomStream random(1);
  Taken taken(60);
  std::vector<std::int32_t> out(60);
  for (int token = 0; token < 100; ++token) {
    std::vector<OpenPool> hand{open(pool)};
    taken.next_token();
    take_items(random, hand, taken, 60, out.data());
    std::vector<bool> seen(60);
    for (const std::int32_t item : out) {
      REQUIRE_FALSE(seen[item]);
      seen[item] = true;
    }
  }
}

TEST_CASE("an alias table draws a single item and keeps small weights") {
  RandomStream random(3);
  REQUIRE(AliasTable(items_of({17}, 5)).draw(random) == 5);
  // One in 4,001 of 4,001,000 draws: 1,000 expected, 5 standard deviations are 158.
  const AliasTable table(items_of({4000, 1}));
  int rare = 0;
  for (int i = 0; i < 4'001'000; ++i) rare += table.draw(random);
  REQUIRE(rare == Approx(1000).margin(158));
}
