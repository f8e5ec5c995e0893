
#include <limits>

#include "hw/catalog.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

Accelerator h800() {
  return Catalog().accelerator("h800-sxm");
}

// Dense FP8 GEMMs of two weight matrices at three row counts; one value was not measured.
Profile small_profile() {
  Profile profile;
  profile.accelerator = "h800-sxm";
  profile.reference = h800();
  profile.sources = {{"LAB", "made up for tests", "none", "2026-01-01"}};
  ProfileTable table;
  table.name = "dense";
  table.kinds = {"gemm"};
  table.dtype = DType::kFp8;
  table.stack = "lab-1";
  table.source = "LAB";
  table.cores = 132;
  table.site_keys = {ProfileKey::kN, ProfileKey::kK};
  table.axes = {{ProfileKey::kM, {128, 1024, 8192}}};
  table.sites = {{4096, 7168}, {7168, 2048}};
  const float hole = std::numeric_limits<float>::quiet_NaN();
  table.microseconds = {20, 60, 400, 11, hole, 230};
  table.held_out = {2, 0.08, 0.1};
  profile.tables = {table};
  return profile;
}

CostQuery gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.kind = OpKind::kGemm,
          .shape = {.m = m, .n = n, .k = k},
          .dtype = DType::kFp8,
          .cores = 132,
          .rows = {}};
}

class Fixture {
 public:
  Fixture() : tables_({small_profile()}), model_(h800()) {}
  Cost at(const CostQuery& query, Clocks clocks = Clocks::kBurst) const {
    return *tables_.cost(model_, query, clocks);
  }

 protected:
  MeasuredTables tables_;
  AnalyticModel model_;
};

TEST_CASE_METHOD(Fixture, "a grid point under the conditions of its measurement is the measurement") {
  const Cost cost = at(gemm(1024, 4096, 7168));
  CHECK(cost.seconds == Approx(60e-6));
  CHECK(cost.origin == Origin::kMeasured);
  CHECK(at(gemm(8192, 7168, 2048)).seconds == Approx(230e-6));
}

TEST_CASE_METHOD(Fixture, "between grid points the time lies between the measurements, as interpolated") {
  double before = 60e-6;
  for (std::int64_t m = 1100; m < 8192; m += 300) {
    const Cost cost = at(gemm(m, 4096, 7168));
    CHECK(cost.seconds >= before);
    CHECK(cost.seconds <= 400e-6 * (1 + 1e-6));
    CHECK(cost.origin == Origin::kInterpolated);
    // Two rows kept out said 0.08, the model's own counts for five.
    CHECK(cost.error == Approx((2 * 0.08 + 5 * model_.error(gemm(m, 4096, 7168))) / 7).epsilon(0.01));
    before = cost.seconds;
  }
}

TEST_CASE_METHOD(Fixture, "the steps of waves stay between grid points") {
  // 4096 columns are 32 tiles: 4 row tiles fit in a wave of 132 tiles (128 used), the fifth opens the next.
  const double four = at(gemm(2048 + 512, 4096, 7168)).seconds,
               five = at(gemm(2048 + 513, 4096, 7168)).seconds;
  CHECK(five > four * 1.1);
  CHECK(at(gemm(2048 + 640, 4096, 7168)).seconds == Approx(five).epsilon(0.01));
}

TEST_CASE_METHOD(
    Fixture, "beyond the grid and between sites the answer says that it is extrapolated or interpolated") {
  CHECK(at(gemm(16384, 4096, 7168)).origin == Origin::kExtrapolated);
  CHECK(at(gemm(16384, 4096, 7168)).error >= 0.16F);
  CHECK(at(gemm(1024, 5000, 4000)).origin == Origin::kInterpolated);
  CHECK(at(gemm(1024, 9000, 4000)).origin == Origin::kExtrapolated);
}

TEST_CASE_METHOD(Fixture, "a value that was not measured is answered by its neighbour's correction") {
  const Cost cost = at(gemm(1024, 7168, 2048));
  CHECK(cost.origin == Origin::kInterpolated);
  CHECK(cost.seconds > 11e-6);
  CHECK(cost.seconds < 230e-6);
}

TEST_CASE_METHOD(Fixture, "what stands far from every table is left to the model") {
  CHECK_FALSE(tables_.cost(model_, gemm(1024, 64, 64), Clocks::kBurst).has_value());
  CostQuery other = gemm(1024, 4096, 7168);
  other.dtype = DType::kBf16;
  CHECK_FALSE(tables_.cost(model_, other, Clocks::kBurst).has_value());
}

TEST_CASE_METHOD(Fixture, "fewer cores and sustained clocks move a measurement by what the model says") {
  CostQuery query = gemm(8192, 4096, 7168);
  const double burst = at(query).seconds;
  query.cores = 112;
  const Cost moved = at(query, Clocks::kSustained);
  const double expected = model_.estimate(query, Clocks::kSustained).seconds /
                          model_.estimate(gemm(8192, 4096, 7168), Clocks::kBurst).seconds;
  CHECK(moved.seconds / burst == Approx(expected));
  CHECK(moved.origin == Origin::kInterpolated);
}

TEST_CASE_METHOD(Fixture, "a what-if on the chip is answered by the changed chip") {
  // m = 128 reads 29 MB of weights in a time bound by memory: half the rate takes nearly twice the time.
  Accelerator slow = h800();
  slow.memory_rate = slow.memory_rate / 2;
  const AnalyticModel changed(slow);
  const double before = at(gemm(128, 4096, 7168)).seconds;
  const double after = tables_.cost(changed, gemm(128, 4096, 7168), Clocks::kBurst)->seconds;
  CHECK(after / before > 1.6);
  CHECK(after / before < 2.0);
}

// Measured in L2 and bound by neither memory: 38 MB of a cache come from GDDR6 within 50 us, whatever ratio
// the model sees between the two.
TEST_CASE("what a replay found in L2 is longer by no more than it takes to bring it") {
  Profile profile;
  profile.accelerator = "l40s";
  profile.reference = Catalog().accelerator("l40s");
  profile.sources = {{"LAB", "made up for tests", "none", "2026-01-01"}};
  ProfileTable table;
  table.name = "latent decode";
  table.kinds = {"attention"};
  table.dtype = DType::kBf16;
  table.stack = "lab-1";
  table.source = "LAB";
  table.cores = profile.reference.cores;
  table.hot = true;
  table.where = {{ProfileKey::kKvHeads, 1, 1},
                 {ProfileKey::kHeadDim, 576, 576},
                 {ProfileKey::kVDim, 512, 512},
                 {ProfileKey::kQueries, 1, 1}};
  table.site_keys = {ProfileKey::kHeads};
  table.axes = {{ProfileKey::kKv, {4096, 32768}}};
  table.sites = {{16}};
  table.microseconds = {300, 2500};
  table.held_out = {2, 0.08, 0.1};
  profile.tables = {table};
  const MeasuredTables tables({profile});
  const AnalyticModel model(profile.reference);
  CostQuery query{
      .kind = OpKind::kAttention,
      .shape = {.m = 1, .groups = 1, .heads = 16, .kv_heads = 1, .head_dim = 576, .v_dim = 512, .kv = 32768},
      .dtype = DType::kBf16,
      .cores = profile.reference.cores,
      .rows = {}};
  const double from_memory = tables.cost(model, query, Clocks::kBurst)->seconds;
  query.hot = true;
  CHECK(tables.cost(model, query, Clocks::kBurst)->seconds == Approx(2500e-6).epsilon(0.01));
  CHECK(from_memory >= 2500e-6 * 0.99);
  CHECK(from_memory <= 2570e-6);
}

TEST_CASE("a stack selects its tables, and an unknown one is named with its nearest") {
  CHECK(MeasuredTables({small_profile()}, "lab-1").stacks() == std::vector<std::string>{"lab-1"});
  CHECK_THROWS_WITH(MeasuredTables({small_profile()}, "lab-2"),
                    "no profile has a stack \"lab-2\" (did you mean \"lab-1\"?)");
}

TEST_CASE("a table of an op kind that does not exist is an error") {
  Profile profile = small_profile();
  profile.tables[0].kinds = {"gem"};
  CHECK_THROWS_WITH(MeasuredTables({profile}),
                    "profile table \"dense\": unknown op kind \"gem\" (did you mean \"gemm\"?)");
}

TEST_CASE("the default source of H800 prefers the stack that is named") {
  const Accelerator chip = h800();
  const auto first = make_cost_source(chip);
  const auto second = make_cost_source(chip, "", "infersim-2025");
  CHECK(first->description().find("deepgemm-2025-02-25") != std::string::npos);
  CHECK(second->description() == "profile h800-sxm (infersim-2025) over analytic (hopper)");
  const CostQuery query = gemm(64, 4096, 7168);
  // InferSim's rows hold several microseconds of launch that DeepGEMM's own do not: 18.3 against 13.1 us.
  CHECK(second->cost(query).seconds > first->cost(query).seconds * 1.2);
}

}  // namespace
// 7168 x 2048 x 8192 is 240 GFLOP, which take 121 us at the peak of 1979 TFLOP/s; the table says 2.
TEST_CASE("a row that beats the chip is held to the roofline and called so") {
  Profile profile = small_profile();
  profile.tables[0].microseconds.back() = 2;
  const AnalyticModel model(h800());
  const Cost held = *MeasuredTables({profile}).cost(model, gemm(8192, 7168, 2048), Clocks::kBurst);
  CHECK(held.origin == Origin::kRoofline);
  CHECK(held.seconds == Approx(roofline(model.engine().chip, gemm(8192, 7168, 2048)).seconds()));
  CHECK(held.error >= model.error(gemm(8192, 7168, 2048)));
}

}  // namespace moebius
