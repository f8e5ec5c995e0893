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

}  // namespace moebius
