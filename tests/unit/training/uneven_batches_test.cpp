// How many microbatches replicas of unequal speed take, and of which part of the batch.
#include "workloads/training/pipeline/uneven_batches.h"

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

using namespace moebius;

TEST_CASE("replicas of equal speed take equally many microbatches") {
  CHECK(split_microbatches({1, 1, 1, 1}, {.microbatches = 12}) == std::vector<int>{3, 3, 3, 3});
}

// Speeds 1 : 1/2 : 1/4, seven microbatches: 4, 2 and 1 end together.
TEST_CASE("a replica of half the speed takes half the microbatches") {
  CHECK(split_microbatches({1, 2, 4}, {.microbatches = 7}) == std::vector<int>{4, 2, 1});
}

// Against all ways to deal out 11 microbatches to three replicas.
TEST_CASE("no other split ends earlier") {
  const std::vector<double> seconds{1.0, 1.7, 2.9};
  for (const int ahead : {0, 3}) {
    double best = 1e300;
    for (int a = 1; a <= 9; ++a) {
      for (int b = 1; a + b <= 10; ++b)
        best = std::min(best, std::max({(ahead + a) * seconds[0], (ahead + b) * seconds[1],
                                        (ahead + 11 - a - b) * seconds[2]}));
    }
    const std::vector<int> split = split_microbatches(seconds, {.microbatches = 11, .ahead = ahead});
    double ours = 0;
    for (int i = 0; i < 3; ++i) ours = std::max(ours, (ahead + split[i]) * seconds[i]);
    CHECK(ours == Approx(best));
    CHECK(std::accumulate(split.begin(), split.end(), 0) == 11);
  }
}

TEST_CASE("replicas that meet take equally many at the pace of the slower") {
  CHECK(split_microbatches({1, 2, 4, 4}, {.microbatches = 12, .together = 2}) ==
        std::vector<int>{4, 4, 2, 2});
}

TEST_CASE("every part of a batch is read once, in turn where numbers are equal") {
  CHECK(parts_of_batch({2, 2}) == std::vector<std::vector<std::int32_t>>{{0, 2}, {1, 3}});
  CHECK(parts_of_batch({3, 1, 2}) == std::vector<std::vector<std::int32_t>>{{0, 3, 5}, {1}, {2, 4}});
}
