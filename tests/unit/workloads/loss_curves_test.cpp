// How far two runs learn alike.
#include "workloads/report/loss_curves.h"

#include "tests/process.h"

#include <catch2/catch.hpp>

namespace moebius {

TEST_CASE("loss curves are compared in the steps that both runs have") {
  const LossCurve a{0, {4, 3, 2, 1}}, b{2, {2, 1.1, 0.5}};
  const std::optional<LossComparison> both = compare_losses(a, b);
  REQUIRE(both.has_value());
  CHECK(both->first_step == 2);
  CHECK(both->num_steps == 2);
  CHECK(both->final_a == 1);
  CHECK(both->final_b == 1.1);
  // Step 2 is equal, step 3 a tenth off.
  CHECK(both->mean == Approx(0.05));
  CHECK(both->largest == Approx(0.1));
  CHECK(both->largest_step == 3);
  CHECK(both->first_different == 3);
  CHECK(both->first_apart == 3);
  // Two steps are fewer than ten: one mean, of 2 and 1 against 2 and 1.1.
  CHECK(both->smoothed == 2);
  CHECK(both->smooth_largest == Approx(1.55 / 1.5 - 1));
}

TEST_CASE("a difference below the tolerance is one to the bit alone") {
  const std::optional<LossComparison> both = compare_losses({0, {2, 2}}, {0, {2, 2.01}});
  REQUIRE(both.has_value());
  CHECK(both->first_different == 1);
  CHECK_FALSE(both->first_apart.has_value());
}

TEST_CASE("means of ten steps smooth what single steps scatter") {
  LossCurve a{0, std::vector<double>(20, 1.0)}, b = a;
  b.losses[5] = 2;  // a tenth of a mean of ten
  const std::optional<LossComparison> both = compare_losses(a, b);
  REQUIRE(both.has_value());
  CHECK(both->largest == Approx(1));
  CHECK(both->smooth_largest == Approx(0.1));
  CHECK(both->smooth_b == Approx(1));
}

TEST_CASE("runs without a step in common are not compared") {
  CHECK_FALSE(compare_losses({0, {1, 2}}, {2, {3}}).has_value());
  CHECK_FALSE(compare_losses({}, {0, {1}}).has_value());
}

TEST_CASE("the chart marks where curves coincide and where each goes its way") {
  const LossCurve a{0, {4, 2}}, b{0, {4, 1}};
  const std::string text = to_text(*compare_losses(a, b), a, b);
  // Two columns between 4 (above) and 1 (below): both begin above, b ends below, a a third up.
  CHECK(text.find("   4.0000 |*\n") != std::string::npos);
  CHECK(text.find("   1.0000 | b\n") != std::string::npos);
  CHECK(text.find(" | a\n") != std::string::npos);
  CHECK(text.find("first difference   in step 1, of more than 1% in step 1") != std::string::npos);
}

TEST_CASE("losses come from a run's report, and a damaged one is told") {
  const test::Scratch scratch;
  const std::string run = scratch.path("");
  CHECK(loss_curve(run).losses.empty());
  scratch.write("report.json", R"({"loss": [3.5, 2], "first_step": 7})");
  CHECK(loss_curve(run).losses == std::vector<double>{3.5, 2});
  CHECK(loss_curve(run).first_step == 7);
  scratch.write("timeline.mtl", "");  // a run may be named by it
  CHECK(loss_curve(scratch.path("timeline.mtl")).losses == std::vector<double>{3.5, 2});
  scratch.write("report.json", R"({"loss": [3.5, "low"]})");
  CHECK_THROWS_WITH(loss_curve(run), Catch::Contains("/loss: expected a loss, found \"low\""));
  scratch.write("report.json", R"({"loss": [1], "first_step": -1})");
  CHECK_THROWS_WITH(loss_curve(run), Catch::Contains("/first_step: expected a step, found -1"));
}

}  // namespace moebius
