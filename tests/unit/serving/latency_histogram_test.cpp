// Durations in buckets.
#include <catch2/catch.hpp>

#include "workloads/serving/system/latency_histogram.h"

namespace moebius {

TEST_CASE("percentiles of a histogram are exact to a thousandth, its mean is exact") {
  LatencyHistogram histogram;
  for (std::int64_t i = 1; i <= 100'000; ++i) histogram.add({i * 1'003});
  CHECK(histogram.mean() == Approx(1.003e-6 * 50'000.5).epsilon(1e-12));
  for (const double share : {0.01, 0.5, 0.9, 0.95, 0.99, 1.0})
    CHECK(histogram.at(share) == Approx(1.003e-6 * 1e5 * share).epsilon(1e-3));
}

TEST_CASE("merged histograms are that of all durations") {
  LatencyHistogram one, other, both;
  for (std::int64_t i = 0; i < 1000; ++i) {
    (i % 3 == 0 ? one : other).add({i * i * 100});
    both.add({i * i * 100});
  }
  one.merge(other);
  CHECK(one.count() == 1000);
  CHECK(one.at(0.37) == both.at(0.37));
  CHECK(one.mean() == Approx(both.mean()));
}

// 1,050,000 ns lie in a bucket 1,024 ns wide, whose middle is at 1,050,111.5.
TEST_CASE("no percentile is beyond the least or the most of the durations") {
  LatencyHistogram one, all;
  one.add({1'050'000});
  CHECK(one.at(0.5) == one.mean());
  all.add({2'000'000});
  all.merge(one);
  CHECK(all.at(1) == Approx(2e-3).epsilon(1e-12));
}

}  // namespace moebius
