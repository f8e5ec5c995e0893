// Whether the cases of a group stand in the published order.
#include <catch2/catch.hpp>

#include "workloads/validation/validation.h"

namespace moebius {
namespace {

ValidatedCase one(const std::string& group, double published, double ours, double tolerance = 0.05) {
  ValidatedRow row;
  row.expectation.metric = "mfu";
  row.expectation.value = published;
  row.expectation.tolerance = tolerance;
  row.ours = ours;
  return {.group = group, .name = "case", .rows = {row}};
}

}  // namespace

// Of four judged cases two are published as equal: five pairs differ, and only 0.3 and 0.4 are the wrong way
// round.
TEST_CASE("pairs whose published values differ are counted in order or not") {
  const auto all =
      summaries({one("a", 0.2, 0.1), one("a", 0.3, 0.5), one("a", 0.4, 0.4), one("a", 0.4, 0.6)});
  REQUIRE(all.size() == 1);
  CHECK(all[0].pairs == 5);
  CHECK(all[0].in_order == 4);
}

TEST_CASE("cases of other groups and figures that are only shown are no pairs") {
  const auto all = summaries({one("a", 0.2, 0.1), one("b", 0.3, 0.5), one("a", 0.4, 0.4, 0)});
  REQUIRE(all.size() == 2);
  CHECK(all[0].pairs == 0);
  CHECK(all[1].pairs == 0);
}

}  // namespace moebius
