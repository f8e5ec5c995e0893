#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "workloads/serving/balancing/expert_balancer.h"
#include "workloads/serving/balancing/expert_placement.h"
#include "workloads/serving/system/load_surfaces.h"

namespace moebius {
namespace {

Model sixteen_experts() {
  Model model;
  model.layers = 3;
  model.experts.routed = 16;
  model.experts.active = 2;
  return model;
}

Popularity zipf(double exponent) {
  Popularity popularity;
  popularity.kind = PopularityKind::kZipf;
  popularity.exponent = exponent;
  return popularity;
}

BalancerShape four_ranks(int slots) {
  return {.ranks = 4, .ranks_per_node = 2, .slots = slots, .groups = {}, .expert_bytes = 1000, .seed = 7};
}

ExpertBalancePlan loop(BalancePolicy policy, int redundant) {
  ExpertBalancePlan plan;
  plan.policy = policy;
  plan.redundant = redundant;
  plan.every = plan.window = Time{std::int64_t{60} * 1'000'000'000};
  return plan;
}

Time seconds(double s) {
  return time_from_seconds(s);
}

double mean_balancedness(const ExpertBalancer& balancer) {
  double sum = 0;
  for (const double imbalance : balancer.imbalances()) sum += 1 / imbalance;
  return sum / static_cast<double>(balancer.imbalances().size());
}

}  // namespace

TEST_CASE("chances of experts add up to the experts of a token and rise with their weights") {
  const std::vector<double> chances = chances_of({4, 1, 1, 1, 1}, 2);
  CHECK(std::accumulate(chances.begin(), chances.end(), 0.0) == Approx(2));
  CHECK(chances[0] > chances[1]);
  CHECK(chances[0] < 1);
  // With weights -ln(1 - p) the chances p come back: 0.5 + 5 x 0.3 = 2.
  const std::vector<double> back = chances_of(draw_weights({0.5, 0.3, 0.3, 0.3, 0.3, 0.3}), 2);
  CHECK(back[0] == Approx(0.5));
  CHECK(back[5] == Approx(0.3));
}

TEST_CASE("drift hands the same popularity to other experts and forgets the order in its time") {
  ExpertDrift drift;
  drift.correlation = seconds(600);
  ExpertCourse course(zipf(0.8), drift, 3, sixteen_experts());
  const std::vector<double> first = course.chances(0);
  const auto sorted = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values;
  };
  course.advance(seconds(9));
  CHECK(course.chances(0) == first);  // a sixtieth of the time has not passed
  course.advance(seconds(60));
  CHECK(course.chances(0) != first);
  course.advance(seconds(6000));
  CHECK(sorted(course.chances(0)) == sorted(first));
  ExpertCourse in_one(zipf(0.8), drift, 3, sixteen_experts());
  in_one.advance(seconds(6000));
  CHECK(in_one.chances(2) == course.chances(2));  // whoever looked in between
}

TEST_CASE("a domain comes back with the popularity that it had") {
  ExpertDrift drift;
  drift.domains = {{seconds(10), 1}, {seconds(20), 0}};
  ExpertCourse course(zipf(1), drift, 3, sixteen_experts());
  const std::vector<double> first = course.chances(1);
  course.advance(seconds(10));
  CHECK(course.chances(1) != first);
  course.advance(seconds(25));
  CHECK(course.chances(1) == first);
}

TEST_CASE("tokens split by load level the ranks as far as replicas reach") {
  // Experts 0 and 1 with loads 8 and 2: two replicas of expert 0 on rank 0, one beside expert 1 on rank 1.
  // Evenly a third of 8 each, 16/3 and 14/3; level: 5 and 3 + 2.
  const std::vector<double> loads{8, 2};
  const auto ranks = [&](TokenSplit split) {
    return loads_of_ranks(loads_of_slots({0, 0, 0, 1}, loads, 2, split), 2);
  };
  CHECK(imbalance_of(ranks(TokenSplit::kEven)) == Approx((16.0 / 3) / 5));
  const std::vector<double> level = ranks(TokenSplit::kLoad);
  CHECK(level[0] == Approx(5));
  CHECK(level[1] == Approx(5));
}

TEST_CASE("what stands on a rank stays in its slot and moves once") {
  // Two ranks of two slots: rank 0 wants 1 in place of 0, rank 1 wants 0 twice in place of 2 and 1.
  const Rearrangement change = rearrange({0, 3, 2, 1}, {3, 1, 0, 0}, 2, 1);
  CHECK(change.expert_of_slot == SlotExperts{1, 3, 0, 0});
  REQUIRE(change.moves.size() == 2);
  CHECK(change.moves[0].expert == 1);
  CHECK(change.moves[0].from == 1);
  CHECK(change.moves[1].expert == 0);
  CHECK(change.moves[1].to == 1);
}

TEST_CASE("an expert comes from the same node where it stands there") {
  // Ranks 0, 1 | 2, 3 of one slot each; rank 3 wants expert 0, which ranks 0 and 2 hold.
  const Rearrangement change = rearrange({0, 1, 0, 2}, {0, 1, 2, 0}, 4, 2);
  REQUIRE(change.moves.size() == 2);
  CHECK(change.moves[1].to == 3);
  CHECK(change.moves[1].from == 2);
}

TEST_CASE(
    "greedy placement moves nothing that is not worth it and otherwise never makes the fullest rank fuller") {
  const std::vector<double> loads{9, 1, 1, 1, 5, 1, 1, 1};
  const SlotExperts now{0, 4, 1, 2, 3, 5, 6, 7};  // four ranks of two
  const auto imbalance = [&](const SlotExperts& slots) {
    return imbalance_of(loads_of_ranks(loads_of_slots(slots, loads, 4, TokenSplit::kEven), 4));
  };
  CHECK(better_placement(now, loads, 4, {.saved = 0, .moved = 1}) == now);
  const SlotExperts better = better_placement(now, loads, 4, {.saved = 1e9, .moved = 1});
  // 14 of 20 on rank 0: 2.8 times the mean. Experts 0 and 4 apart leave 10: 2 times.
  CHECK(imbalance(now) == Approx(2.8));
  CHECK(imbalance(better) == Approx(2.0));
}

// Slots [A C | A B], A at 1, B at 0.6, C at 0.1: a second B in C's place would bring all of A upon rank 1.
TEST_CASE("placing better counts where the load of a replica that goes will fall") {
  const std::vector<double> loads{1.0, 0.6, 0.1};
  const SlotExperts now{0, 2, 0, 1};
  const auto fullest = [&](const SlotExperts& slots) {
    const std::vector<double> ranks = loads_of_ranks(loads_of_slots(slots, loads, 2, TokenSplit::kEven), 2);
    return *std::max_element(ranks.begin(), ranks.end());
  };
  CHECK(fullest(now) == Approx(1.1));
  CHECK(fullest(better_placement(now, loads, 2, {.saved = 1e9, .moved = 1})) == Approx(1.0));
}

TEST_CASE("placing better makes loads by Zipf's law nearly even where moving costs nothing") {
  constexpr int kExperts = 64, kSlots = 80, kRanks = 16;
  std::vector<double> loads;
  for (int e = 0; e < kExperts; ++e) loads.push_back(1.0 / (e + 1));
  SlotExperts now;
  for (int slot = 0; slot < kSlots; ++slot) now.push_back(slot % kExperts);
  const auto imbalance = [&](const SlotExperts& slots) {
    return imbalance_of(loads_of_ranks(loads_of_slots(slots, loads, kRanks, TokenSplit::kEven), kRanks));
  };
  CHECK(imbalance(now) > 2);
  CHECK(imbalance(better_placement(now, loads, kRanks, {.saved = 1e12, .moved = 1})) < 1.3);
}

TEST_CASE("loads of a stated imbalance have it and add up to what a token uses") {
  std::vector<double> falling;  // slots of a rank halve; the sixth rank has most
  for (int slot = 0; slot < 64; ++slot) falling.push_back(std::ldexp(slot / 4 == 5 ? 1 : 0.5, -(slot % 4)));
  for (const std::vector<double>& like : {std::vector<double>(64, 1.0 / 16), falling})
    for (const double imbalance : {1.0, 1.25, 2.0, 6.0}) {
      const std::vector<double> loads = loads_with_imbalance(imbalance, 16, 4, like);
      CHECK(std::accumulate(loads.begin(), loads.end(), 0.0) == Approx(4));
      CHECK(imbalance_of(loads_of_ranks(loads, 16)) == Approx(imbalance));
      CHECK(*std::max_element(loads.begin(), loads.end()) <= 1);
    }
  const std::vector<double> loads = loads_with_imbalance(2, 16, 4, falling);
  CHECK(loads[20] == Approx(2 * loads[21]));
  CHECK(loads[20] + loads[21] + loads[22] + loads[23] == Approx(0.5));
}

TEST_CASE("a loop finds what drift has made uneven and moves as many bytes as ranks got experts") {
  ExpertDrift drift;
  drift.domains = {{seconds(100), 1}};
  ExpertCourse course(zipf(1), drift, 3, sixteen_experts());
  ExpertBalancer balancer(loop(BalancePolicy::kGlobal, 8), four_ranks(24), course);
  const double at_first = mean_balancedness(balancer);
  double changed = 0;
  for (int second = 0; second < 200; ++second) {
    course.advance(seconds(second));
    balancer.advance(seconds(second), {});
    if (second == 100) changed = mean_balancedness(balancer);
    balancer.count(100000);
    balancer.slice();
    if (balancer.moving()) balancer.slice_done(seconds(second), 0.5);
  }
  CHECK(changed < at_first);
  // At 120 s most of the window is of the new domain, at 180 s all of it.
  CHECK(mean_balancedness(balancer) == Approx(at_first).epsilon(0.1));
  REQUIRE(balancer.rebalances().size() == 3);
  for (const Rebalance& of : balancer.rebalances()) CHECK(of.bytes == 1000.0 * static_cast<double>(of.moves));
  CHECK(balancer.rebalances()[1].after > balancer.rebalances()[1].before);
}

// In 80 s before 90 s all experts are asked for alike; what expert 0 alone had before 10 s is of no window.
TEST_CASE("a placement counts the load of its window and nothing before it") {
  ExpertCourse course(zipf(1), {}, 3, sixteen_experts());
  ExpertBalancePlan plan = loop(BalancePolicy::kGlobal, 8);
  plan.every = seconds(90);
  plan.window = seconds(80);
  ExpertBalancer balancer(plan, four_ranks(24), course);
  std::vector<double> first(48, 0.0);
  for (std::size_t layer = 0; layer < 3; ++layer) first[layer * 16] = 1e6;
  const std::vector<double> then(48, 1.0);
  for (int second = 0; second < 90; ++second) {
    balancer.advance(seconds(second), {});
    balancer.count(1, second < 10 ? first : then);
  }
  balancer.advance(seconds(90), {});
  for (balancer.slice(); balancer.moving(); balancer.slice()) balancer.slice_done(seconds(90), 0);
  for (int layer = 0; layer < 3; ++layer) {
    const SlotExperts& slots = balancer.places(layer);
    CHECK(std::count(slots.begin(), slots.end(), 0) == 2);  // 24 slots for 16 alike: the first eight twice
  }
}

TEST_CASE("experts that ranks have columns of move in all their parts") {
  ExpertDrift drift;
  drift.domains = {{seconds(30), 1}};
  ExpertCourse course(zipf(1), drift, 3, sixteen_experts());
  BalancerShape shape = four_ranks(24);
  shape.cut_over = 8;
  ExpertBalancer balancer(loop(BalancePolicy::kGlobal, 8), shape, course);
  for (int second = 0; second <= 60; ++second) {
    course.advance(seconds(second));
    balancer.advance(seconds(second), {});
    balancer.count(100000);
  }
  REQUIRE(balancer.rebalances().size() == 1);
  CHECK(balancer.rebalances()[0].moves > 0);
  CHECK(balancer.rebalances()[0].bytes == 8000.0 * static_cast<double>(balancer.rebalances()[0].moves));
}

TEST_CASE("even popularity is left as it stands") {
  ExpertCourse course({}, {}, 3, sixteen_experts());
  ExpertBalancer balancer(loop(BalancePolicy::kGlobal, 8), four_ranks(24), course);
  for (int second = 0; second < 200; ++second) {
    balancer.advance(seconds(second), {});
    balancer.count(1000);
    CHECK_FALSE(balancer.moving());
  }
  CHECK(balancer.rebalances().empty());
  CHECK(mean_balancedness(balancer) == 1);
}

TEST_CASE("more slots never make a first placement less even on average") {
  double before = 0;
  for (const int redundant : {0, 4, 8, 16, 32}) {
    ExpertCourse course(zipf(0.9), {}, 11, sixteen_experts());
    ExpertBalancer balancer(loop(BalancePolicy::kGlobal, redundant), four_ranks(16 + redundant), course);
    CHECK(mean_balancedness(balancer) >= before);
    before = mean_balancedness(balancer);
  }
}

TEST_CASE("an expert that every token uses is counted, placed and repeated by its load") {
  ExpertCourse course(zipf(0.5), {}, 3, sixteen_experts());
  BalancerShape shape = four_ranks(24);
  shape.always = 1;
  ExpertBalancer balancer(loop(BalancePolicy::kGlobal, 7), shape, course);
  for (int layer = 0; layer < 3; ++layer) {
    const SlotExperts& slots = balancer.places(layer);
    const auto copies = std::count(slots.begin(), slots.end(), 16);
    CHECK(copies >= 2);
    // No other slot is loaded more than one of its copies would be, had it one less.
    const std::vector<double> loads = balancer.slot_loads(layer);
    CHECK(*std::max_element(loads.begin(), loads.end()) <= 1.0 / static_cast<double>(copies - 1));
    CHECK(std::accumulate(loads.begin(), loads.end(), 0.0) == Approx(3));
  }
  balancer.count(1000);
  balancer.finish();
  for (int layer = 0; layer < 3; ++layer) CHECK(balancer.copies()[layer * 17 + 16] == 1000);
}

}  // namespace moebius
