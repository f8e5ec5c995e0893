#include "workloads/serving/system/forecast_margin.h"

#include <catch2/catch.hpp>

using namespace moebius;

namespace {

Time milliseconds(std::int64_t count) {
  return {count * 1'000'000};
}

}  // namespace

TEST_CASE("a margin is what 99 of a hundred requests stayed below, of the last minute") {
  ForecastMargin margin;
  CHECK(margin.at({}) == Time{});
  for (int late = 1; late <= 199; ++late) margin.add({}, milliseconds(100 + late), milliseconds(100));
  CHECK(margin.at(milliseconds(2'000)) == milliseconds(198));
  CHECK(margin.at(milliseconds(70'000)) == Time{});
}

TEST_CASE("forecasts that were too long leave no margin") {
  ForecastMargin margin;
  margin.add({}, milliseconds(50), milliseconds(100));
  CHECK(margin.at({}) == Time{});
}

TEST_CASE("of few requests the one that was latest is the margin, of many the last ones count") {
  ForecastMargin margin;
  margin.add({}, milliseconds(110), milliseconds(100));
  margin.add({}, milliseconds(130), milliseconds(100));
  CHECK(margin.at({}) == milliseconds(30));
  for (int i = 0; i < 256; ++i) margin.add({}, milliseconds(105), milliseconds(100));
  CHECK(margin.at({}) == milliseconds(5));
}
