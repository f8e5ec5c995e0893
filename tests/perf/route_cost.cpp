// Drawing the routes of a layer: how many choices, and the CPU time of each. Counts are asserted, times
// recorded.
#include <catch2/catch.hpp>

#include <cstdio>

#include "tests/perf/process_use.h"
#include "workloads/routing/routing.h"

namespace {

using namespace moebius;

// DeepSeek-V3's router over 64 ranks of 4,096 tokens: one of the 58 draws of a step.
void record(const char* name, Popularity popularity, int groups, int active_groups) {
  const double start = cpu_seconds();
  const Route route({.popularity = popularity,
                     .ranks = 64,
                     .ranks_per_node = 8,
                     .experts = 256,
                     .active = 8,
                     .groups = groups,
                     .active_groups = active_groups,
                     .tokens = 4096});
  const double spent = cpu_seconds() - start;
  std::int64_t choices = 0;
  for (int rank = 0; rank < 64; ++rank) choices += route.rows_of_rank(rank);
  CHECK(choices == 64 * 4096 * 8);
  std::printf("%-32s %8lld choices  %6.1f ms CPU  %5.1f ns each  fullest rank %.2f of the mean\n", name,
              static_cast<long long>(choices), spent * 1e3, spent * 1e9 / static_cast<double>(choices),
              64.0 * route.max_rows_of_rank() / static_cast<double>(choices));
}

}  // namespace

TEST_CASE("routes of one layer") {
  const auto zipf = [](double exponent) { return Popularity{PopularityKind::kZipf, exponent, false}; };
  record("balanced", {}, 1, 1);
  record("balanced, 4 of 8 groups", {}, 8, 4);
  record("balanced, 3 of 8 groups", {}, 8, 3);
  for (const double exponent : {0.8, 1.2, 2.0, 3.0, 8.0}) {
    char name[64];
    std::snprintf(name, sizeof name, "Zipf %.1f", exponent);
    record(name, zipf(exponent), 1, 1);
    std::snprintf(name, sizeof name, "Zipf %.1f, 4 of 8 groups", exponent);
    record(name, zipf(exponent), 8, 4);
  }
  record("Zipf 0.8, 4 of 32 groups", zipf(0.8), 32, 4);
  record("Zipf 3.0, 4 of 32 groups", zipf(3), 32, 4);
}
