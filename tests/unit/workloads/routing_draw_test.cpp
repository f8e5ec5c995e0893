// Groups first, then experts of these groups: the chances of whole choices.
#include <algorithm>
#include <cmath>
#include <map>

#include <catch2/catch.hpp>

#include "workloads/routing/routing_draw.h"

using namespace moebius;

namespace {

using Choice = std::vector<std::int32_t>;

// Adds to `chances` those of all ordered ways to choose `left` more of `from` after `chosen`, which had
// `chance`.
template <class Done>
void choose_on(const std::vector<WeightedItem>& from, Choice chosen, int left, double chance,
               const Done& done) {
  if (left == 0) return done(chosen, chance);
  double open = 0;
  const auto is_open = [&](const WeightedItem& item) {
    return std::find(chosen.begin(), chosen.end(), item.item) == chosen.end();
  };
  for (const WeightedItem& item : from) open += is_open(item) ? static_cast<double>(item.weight) : 0;
  for (const WeightedItem& item : from) {
    if (!is_open(item)) continue;
    Choice next = chosen;
    next.push_back(item.item);
    choose_on(from, next, left - 1, chance * static_cast<double>(item.weight) / open, done);
  }
}

// The chance of each set of experts, summed over all orders in which groups and experts can be chosen.
std::map<Choice, double> chances_of(const RouteSpec& spec, const std::vector<WeightedItem>& experts) {
  const int each = spec.experts / spec.groups;
  std::vector<WeightedItem> groups;
  for (int g = 0; g < spec.groups; ++g) groups.push_back({0, g});
  for (const WeightedItem& expert : experts) groups[expert.item / each].weight += expert.weight;
  std::map<Choice, double> chances;
  choose_on(groups, {}, spec.active_groups, 1, [&](const Choice& hand, double chance) {
    std::vector<WeightedItem> open;
    for (const WeightedItem& expert : experts) {
      if (std::find(hand.begin(), hand.end(), expert.item / each) != hand.end()) open.push_back(expert);
    }
    choose_on(open, {}, spec.active, chance, [&](Choice choice, double p) {
      std::sort(choice.begin(), choice.end());
      chances[choice] += p;
    });
  });
  return chances;
}

// Choices that are expected less than 20 times count together.
void require_law_of_choices(const RouteSpec& spec, bool by_sets) {
  const int draws = 200000;
  const PopularChooser chooser(spec, 11);
  REQUIRE(chooser.chooses_sets() == by_sets);
  PopularChooser::Scratch scratch = chooser.scratch();
  RandomStream random(5);
  std::map<Choice, int> counts;
  for (int i = 0; i < draws; ++i) {
    Choice choice(spec.active);
    chooser.choose(random, scratch, choice.data());
    std::sort(choice.begin(), choice.end());
    ++counts[choice];
  }
  double statistic = 0, cells = 0, rare = 0, rare_count = 0, sum = 0;
  const auto add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (const auto& [choice, chance] : chances_of(spec, chooser.experts())) {
    const double expected = draws * chance;
    sum += chance;
    if (expected >= 20) {
      add(counts[choice], expected);
    } else {
      rare += expected;
      rare_count += counts[choice];
    }
  }
  REQUIRE(sum == Approx(1));
  if (rare > 5) add(rare_count, rare);
  REQUIRE(cells > 10);
  REQUIRE(statistic < cells + 6 * std::sqrt(2 * cells));  // once in 10^7 seeds or less
}

RouteSpec limited(int groups, double exponent) {
  return {.popularity = {.kind = PopularityKind::kZipf, .exponent = exponent},
          .experts = groups * 2,
          .active = 3,
          .groups = groups,
          .active_groups = 2};
}

}  // namespace

TEST_CASE("sets of groups drawn at once have the chances of groups chosen one after the other") {
  require_law_of_choices(limited(4, 0.5), true);
  require_law_of_choices(limited(6, 2), true);
}

TEST_CASE("many groups are chosen one after the other, with the same law") {
  require_law_of_choices(limited(13, 0.5), false);
  require_law_of_choices(limited(14, 2), false);
}

TEST_CASE("unlimited choices have the chances of experts chosen one after the other") {
  for (const double exponent : {0.5, 1.5, 4.0}) {
    RouteSpec spec = limited(6, exponent);
    spec.groups = spec.active_groups = 1;
    require_law_of_choices(spec, true);
  }
}
