#include "workloads/calibration/fit_table.h"

#include <cmath>

#include "hw/catalog.h"
#include "workloads/calibration/page/accuracy_table.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

Accelerator h100() {
  return Catalog().accelerator("h100-sxm");
}

double model_us(double m) {
  static const AnalyticModel model(h100());
  const Shape shape{.m = static_cast<std::int64_t>(m), .n = 4096, .k = 7168};
  return model.estimate({OpKind::kGemm, shape, DType::kBf16, 132, {}}, Clocks::kBurst).seconds * 1e6;
}

// A kernel that takes 1.3 times as long as the model says, at 64 row counts; every tenth row 1.5 times that.
TableDraft scattered(bool with_outliers) {
  TableDraft draft;
  draft.table.name = "dense GEMM";
  draft.table.kinds = {"gemm"};
  draft.table.dtype = DType::kBf16;
  draft.table.stack = "lab-1";
  draft.table.cores = 132;
  draft.table.site_keys = {ProfileKey::kN, ProfileKey::kK};
  draft.table.axes = {{ProfileKey::kM, {}}};
  for (int i = 1; i <= 64; ++i) {
    const double m = 64.0 * i, us = 1.3 * model_us(m) * (with_outliers && i % 10 == 5 ? 1.5 : 1);
    draft.rows.push_back({{4096, 7168}, {m}, us, "row " + std::to_string(i)});
  }
  return draft;
}

double told_us(const ProfileTable& table, double m) {
  Profile profile;
  profile.reference = h100();
  profile.tables = {table};
  const Shape shape{.m = static_cast<std::int64_t>(m), .n = 4096, .k = 7168};
  const CostQuery query{OpKind::kGemm, shape, DType::kBf16, 132, {}};
  const auto cost = MeasuredTables({profile}).cost(AnalyticModel(h100()), query, Clocks::kBurst);
  CHECK(cost->origin == Origin::kInterpolated);  // a fitted value is no measurement
  return cost->seconds * 1e6;
}

TEST_CASE("few rows are all built from, and impossible ones leave a table without sites and the reason") {
  for (int rows = 1; rows < 10; ++rows) {
    TableDraft draft = scattered(false);
    draft.rows.resize(static_cast<std::size_t>(rows));
    const ProfileTable table = fit_table(std::move(draft), h100());
    CHECK(table.sites.size() == 1);
    CHECK(table.held_out.rows == 0);
  }
  TableDraft draft = scattered(false);
  for (MeasuredRow& row : draft.rows) row.microseconds = 1e-3;
  const ProfileTable none = fit_table(std::move(draft), h100());
  CHECK(none.sites.empty());
  int rejected = 0;
  for (const RejectedRows& rows : none.rejected) rejected += rows.rows;
  CHECK(rejected == 64);
}

TEST_CASE("rows that follow the model need few grid points, and are told between them") {
  const ProfileTable table = fit_table(scattered(false), h100());
  CHECK(table.fitted);
  CHECK(table.axes[0].points.size() <= 5);
  CHECK(table.held_out.rows > 4);
  CHECK(table.held_out.worst < 0.01);  // values keep four digits
  for (const double m : {100.0, 1000.0, 3000.0})
    CHECK(told_us(table, m) == Approx(1.3 * model_us(m)).epsilon(0.01));
}

TEST_CASE("single outliers move no value") {
  const ProfileTable table = fit_table(scattered(true), h100());
  for (const double m : {300.0, 1000.0, 3000.0})
    CHECK(told_us(table, m) == Approx(1.3 * model_us(m)).epsilon(0.02));
  CHECK(table.held_out.median < 0.01);
}

TEST_CASE("a shape that was measured again becomes the median, counted with the reason") {
  TableDraft draft = scattered(false);
  for (const double factor : {3.0, 0.9}) {
    MeasuredRow again = draft.rows[30];
    again.microseconds *= factor;
    draft.rows.push_back(again);
  }
  const ProfileTable table = fit_table(draft, h100());
  REQUIRE(table.rejected.size() == 1);
  CHECK(table.rejected[0].rows == 2);
  CHECK(to_json(Profile{"x", h100(), {}, {table}}) ==
        to_json(Profile{"x", h100(), {}, {fit_table(draft, h100())}}));
}

TEST_CASE("of two kernels for every shape the faster stands, whichever comes first") {
  const ProfileTable alone = fit_table(scattered(false), h100());
  for (const bool slower_first : {true, false}) {
    const std::vector<MeasuredRow> rows = scattered(false).rows;
    TableDraft draft = scattered(false);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      draft.rows.push_back(rows[i]);
      (slower_first ? draft.rows[i] : draft.rows.back()).microseconds *= 3;
    }
    const ProfileTable table = fit_table(draft, h100());
    REQUIRE(table.rejected.size() == 1);
    CHECK(table.rejected[0].rows == 64);
    CHECK(table.microseconds == alone.microseconds);
  }
}

TEST_CASE("a row far slower than several with more work is left out, counted with the reason") {
  TableDraft draft = scattered(false), without = scattered(false);
  draft.rows[20].microseconds *= 4;
  without.rows.erase(without.rows.begin() + 20);
  const ProfileTable table = fit_table(draft, h100()), other = fit_table(without, h100());
  REQUIRE(table.rejected.size() == 1);
  CHECK(table.rejected[0].rows == 1);
  CHECK(table.axes[0].points == other.axes[0].points);
  CHECK(table.microseconds == other.microseconds);
  draft.rows.back().microseconds *= 4;  // of the most work: nothing contradicts it
  CHECK(fit_table(draft, h100()).rejected[0].rows == 1);
}

TEST_CASE("rows faster than the chip can be are left out, counted with the reason") {
  TableDraft draft = scattered(false);
  draft.rows[0].microseconds = 1;   // 58.7 MB of weights take 17.5 us at 3.35 TB/s
  draft.rows[60].microseconds = 9;  // 3904 rows are 229 GFLOP, 232 us at the peak
  const ProfileTable table = fit_table(draft, h100());
  REQUIRE(table.rejected.size() == 2);
  CHECK(table.rejected[0].reason == "faster than the device memory's full rate: served from L2");
  CHECK(table.rejected[1].reason == "faster than the peak of the chip");
}

TEST_CASE("kernels that last long were measured at the power limit, and are not slowed down again") {
  TableDraft draft = scattered(false);
  draft.table.limited_from = 1;  // all of them
  const ProfileTable limited = fit_table(draft, h100());
  Profile profile;
  profile.reference = h100();
  profile.tables = {limited};
  const CostQuery query{OpKind::kGemm, {.m = 4096, .n = 4096, .k = 7168}, DType::kBf16, 132, {}};
  const auto cost = MeasuredTables({profile}).cost(AnalyticModel(h100()), query, Clocks::kSustained);
  CHECK(cost->seconds * 1e6 == Approx(1.3 * model_us(4096)).epsilon(0.005));
}

TEST_CASE("a variant of a stack has its own tables and shares the others") {
  ProfileTable block = fit_table(scattered(false), h100()), own = block, other = block;
  own.stack = "lab-1+rowwise";
  for (float& us : own.microseconds) us *= 2;
  other.kinds = {"gemm_wgrad"};
  const Profile profile{"h100-sxm", h100(), {}, {block, own, other}};
  const AnalyticModel model(h100());
  const CostQuery query{OpKind::kGemm, {.m = 1024, .n = 4096, .k = 7168}, DType::kBf16, 132, {}};
  const double base = MeasuredTables({profile}, "lab-1").cost(model, query, Clocks::kBurst)->seconds;
  const MeasuredTables variant({profile}, "lab-1+rowwise");
  CHECK(variant.cost(model, query, Clocks::kBurst)->seconds == Approx(2 * base));
  CostQuery gradient = query;
  gradient.kind = OpKind::kGemmWgrad;
  CHECK(variant.cost(model, gradient, Clocks::kBurst).has_value());
}

}  // namespace
}  // namespace moebius
