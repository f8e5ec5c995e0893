// How popular experts are, how that moves from step to step, and what a limit on what they take does.
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>

#include "workloads/routing/expert_loads.h"
#include "workloads/routing/routing.h"

using namespace moebius;

namespace {

std::vector<double> shares(PopularityCourse& course, int layer, int step) {
  std::vector<double> weights = course.at(layer, step).list();
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

double sum_of_squares(const std::vector<double>& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

RouteSpec route_of(const ExpertWeights& weights, int experts, int active, int tokens) {
  return {.seed = 5,
          .popularity = {.kind = PopularityKind::kRecorded},
          .weights = weights,
          .ranks = 4,
          .ranks_per_node = 2,
          .experts = experts,
          .active = active,
          .tokens = tokens};
}

}  // namespace

// For Dirichlet with concentration a of each of n experts, E[sum p^2] = (a + 1) / (n a + 1).
TEST_CASE("Dirichlet shares are as uneven as their concentration says") {
  constexpr int kExperts = 64, kLayers = 400;
  for (const double a : {0.05, 0.5, 4.0}) {
    PopularityCourse course({.kind = PopularityKind::kDirichlet, .concentration = a}, 11, kExperts, 8);
    double sum = 0;
    for (int layer = 0; layer < kLayers; ++layer) sum += sum_of_squares(shares(course, layer, 0));
    CHECK(sum / kLayers == Approx((a + 1) / (kExperts * a + 1)).epsilon(0.08));
  }
}

// Each step adds a normal number of the given deviation: after t steps the deviation of the difference of two
// logarithms has grown by sigma * sqrt(2 t).
TEST_CASE("drifting popularity walks at random and is the same in any order of asking") {
  constexpr int kExperts = 2000, kSteps = 16;
  const Popularity popularity{.kind = PopularityKind::kZipf, .exponent = 0, .drift = 0.1};
  PopularityCourse course(popularity, 3, kExperts, 8), other(popularity, 3, kExperts, 8);
  const auto early = shares(course, 2, 4), late = shares(course, 2, kSteps);
  double variance = 0;
  for (int e = 0; e < kExperts; e += 2)
    variance += std::pow(std::log(late[e] / late[e + 1]), 2) / (kExperts / 2);
  CHECK(std::sqrt(variance) == Approx(0.1 * std::sqrt(2.0 * kSteps)).epsilon(0.06));
  CHECK(shares(other, 2, kSteps) == late);
  CHECK(shares(other, 2, 4) == early);
  CHECK(shares(other, 3, 4) != early);
}

// Shares r^-1 of 32 experts: the heaviest has ln(32 / H(32)) = 2.06 too much in its logarithm, which falls by
// 0.05 a step until all are within a step of the mean.
TEST_CASE("biases that follow the loads even them out") {
  PopularityCourse course({.kind = PopularityKind::kZipf, .exponent = 1, .balancing = 0.05}, 1, 32, 4);
  CHECK(largest(shares(course, 0, 0)) == Approx(1 / 4.0585).epsilon(1e-3));
  CHECK(largest(shares(course, 0, 20)) > 2.0 / 32);
  CHECK(largest(shares(course, 0, 80)) < 1.12 / 32);
}

// One expert is used by six in ten tokens, another by none.
TEST_CASE("recorded counts come back when tokens draw their experts") {
  std::vector<double> counts(32, 2000.0);
  counts[7] = 6000;
  counts[9] = 0;
  double rest = 10000 * 8;
  rest -= counts[7];
  for (int e = 0; e < 32; ++e) {
    if (e != 7 && e != 9) counts[e] = rest / 30;
  }
  const auto recorded =
      std::make_shared<const RecordedLoads>(std::vector<std::map<int, std::vector<double>>>{{{3, counts}}});
  PopularityCourse course({.kind = PopularityKind::kRecorded, .recorded = recorded}, 1, 32, 8);
  const Route route(route_of(course.at(3, 5), 32, 8, 2500));
  CHECK(route.rows(0, 7) == Approx(6000).epsilon(0.04));
  CHECK(route.rows(1, 1) < 10);  // expert 9
  for (const int e : {0, 20, 31}) CHECK(route.rows(e / 8, e % 8) == Approx(rest / 30).epsilon(0.08));
}

TEST_CASE("an expert takes no more than its capacity of one rank's tokens, in the order of tokens") {
  RouteSpec spec = route_of({}, 8, 2, 100);
  spec.popularity = {PopularityKind::kZipf, 1.0, false};
  const Route free(spec);
  spec.capacity = 30;
  const Route route(spec);
  std::int64_t kept = 0;
  for (int rank = 0; rank < 4; ++rank) kept += route.rows_of_rank(rank);
  CHECK(route.dropped() > 0);
  CHECK(kept + route.dropped() == 4 * 100 * 2);
  for (int source = 0; source < 4; ++source) {
    const auto all = free.choices(source), limited = route.choices(source);
    std::vector<int> taken(8);
    for (std::size_t i = 0; i < all.size(); ++i) {
      REQUIRE(chosen_expert(limited[i]) == all[i]);  // the draw is the same
      CHECK((limited[i] >= 0) == (++taken[all[i]] <= 30));
    }
  }
  spec.capacity = 100;  // every token
  CHECK(Route(spec).dropped() == 0);
}

TEST_CASE("loads say how much the busiest expert and rank have, and count a draw once") {
  RouteSpec spec = route_of({}, 8, 2, 100);
  spec.popularity = {PopularityKind::kZipf, 1.0, false};
  const Route route(spec);
  int most = 0;
  for (int rank = 0; rank < 4; ++rank) most = std::max({most, route.rows(rank, 0), route.rows(rank, 1)});
  ExpertLoads loads;
  loads.add(route);
  loads.add(route);
  REQUIRE(loads.layers().size() == 1);
  CHECK(loads.layers()[0].busiest_expert == Approx(most / 100.0));  // 800 copies, 8 experts
  CHECK(loads.layers()[0].busiest_rank == Approx(route.max_rows_of_rank() / 200.0));
  CHECK(loads.violations() == std::vector<double>{loads.layers()[0].busiest_expert - 1});
  CHECK(loads.dropped_share() == 0);
}
