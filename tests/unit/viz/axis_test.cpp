// Marks of an axis: where they stand, and that there are few wherever it lies.
#include "viz/data/axis.h"

#include "tests/catch.h"

#include <cmath>
#include <limits>

namespace moebius::viz {
namespace {

TEST_CASE("marks of an axis are the multiples of a round step inside it") {
  const AxisMarks marks = axis_marks(-0.3, 1.05, 4);
  CHECK(marks.step == 0.5);
  REQUIRE(marks.count == 3);
  CHECK(marks.at(0) == 0);
  CHECK(marks.at(2) == 1);
  CHECK(axis_marks(0, 1000, 10).count == 10);  // its end is outside
}

TEST_CASE("an axis has few marks where adding a step to a time changes nothing") {
  const double today = 1.7e18;  // ns since 1970: doubles are 256 apart
  const AxisMarks marks = axis_marks(today, today + 256, 8);
  REQUIRE(today + marks.step == today);
  CHECK(marks.count <= 9);
  for (int i = 0; i < marks.count; ++i) CHECK(std::abs(marks.at(i) - today) <= 512);
}

TEST_CASE("an axis without an extent has no marks") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(axis_marks(3, 3, 4).count == 0);
  CHECK(axis_marks(nan, 1, 4).count == 0);
  CHECK(axis_marks(0, std::numeric_limits<double>::infinity(), 4).count == 0);
}

}  // namespace
}  // namespace moebius::viz
