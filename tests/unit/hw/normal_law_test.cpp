#include "hw/normal_law.h"

#include "tests/catch.h"

using namespace moebius;

TEST_CASE("a share of a normal distribution lies above its quantile") {
  CHECK(normal_quantile(0.5) == Approx(0).margin(1e-12));
  CHECK(normal_quantile(0.025) == Approx(1.959964).epsilon(1e-6));
  CHECK(normal_quantile(0.975) == Approx(-1.959964).epsilon(1e-6));
}

// Harter, "Expected values of normal order statistics", Biometrika 48, 1961.
TEST_CASE("the expected largest of normal draws is the tables'") {
  CHECK(expected_largest(1) == Approx(0).margin(1e-12));
  CHECK(expected_largest(8) == Approx(1.4236).epsilon(0.01));
  CHECK(expected_largest(64) == Approx(2.3437).epsilon(0.005));
  CHECK(expected_largest(100) == Approx(2.5076).epsilon(0.005));
}
