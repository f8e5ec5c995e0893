#include "workloads/calibration/grid_holes.h"

#include <cmath>

#include <catch2/catch.hpp>

namespace moebius {
namespace {

TEST_CASE("a hole between two values of an axis becomes their mean in logarithms") {
  std::vector<double> values = {1, 0, 4};
  fill_holes(values, {3});
  CHECK(values[1] == Approx(2));
  CHECK(values[0] == 1);
  CHECK(values[2] == 4);
}

TEST_CASE("nearer values count more: by one over the steps squared") {
  std::vector<double> values = {1, 0, 0, 8};
  fill_holes(values, {4});
  // One step from 1 and two from 8: ln 8 / 4 over 1 + 1/4.
  CHECK(values[1] == Approx(std::exp(std::log(8.0) / 4 / 1.25)));
  CHECK(values[2] == Approx(std::exp(std::log(8.0) / 1.25)));
}

TEST_CASE("all axes through a hole are heard") {
  // The middle of a 3 x 3 grid: 2 and 2 above and below, 8 and 8 beside it.
  std::vector<double> values = {1, 2, 1, 8, 0, 8, 1, 2, 1};
  fill_holes(values, {3, 3});
  CHECK(values[4] == Approx(4));
}

TEST_CASE("holes beyond the last value take it, those behind holes wait, and sites do not mix") {
  std::vector<double> values = {3, 0, 0, 0, 0, 0, 0, 0};
  fill_holes(values, {2, 2});  // two sites of four values
  for (std::size_t i = 0; i < 4; ++i) CHECK(values[i] == Approx(3));
  for (std::size_t i = 4; i < 8; ++i) CHECK(values[i] == 0);
}

}  // namespace
}  // namespace moebius
