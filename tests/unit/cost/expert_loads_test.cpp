#include "workloads/cost/uneven_experts.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "hw/catalog.h"
#include "workloads/cost/expert_ops.h"
#include "workloads/cost/table.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using Rows = std::vector<std::int32_t>;

// Even loads of 16 experts: 400 us whatever the load, and 2 us a row.
Profile lab() {
  Profile profile;
  profile.accelerator = "h200-sxm";
  profile.reference = Catalog().accelerator("h200-sxm");
  profile.sources = {{"LAB", "made up for tests", "none", "2026-01-01"}};
  ProfileTable table;
  table.name = "expert GEMMs";
  table.kinds = {"grouped_gemm"};
  table.dtype = DType::kBf16;
  table.stack = "lab-1";
  table.source = "LAB";
  table.cores = 132;
  table.site_keys = {ProfileKey::kGroups, ProfileKey::kN, ProfileKey::kK};
  table.axes = {{ProfileKey::kRows, {}}};
  table.sites = {{16, 4096, 7168}};
  for (double rows = 1; rows <= 4096; rows *= 2) {
    table.axes[0].points.push_back(rows);
    table.microseconds.push_back(static_cast<float>(400 + 2.0 * rows * 16));
  }
  profile.tables = {table};
  return profile;
}

double microseconds(const Rows& rows) {
  static const MeasuredTables tables({lab()});
  static const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  const CostQuery query{.kind = OpKind::kGroupedGemm,
                        .shape = {.n = 4096, .k = 7168, .groups = 16},
                        .dtype = DType::kBf16,
                        .cores = 132,
                        .rows = rows};
  return tables.cost(model, query, Clocks::kBurst)->seconds * 1e6;
}

double even_microseconds(std::int64_t m) {
  static const MeasuredTables tables({lab()});
  static const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  const CostQuery query{.kind = OpKind::kGroupedGemm,
                        .shape = {.m = m, .n = 4096, .k = 7168, .groups = 16},
                        .dtype = DType::kBf16,
                        .cores = 132};
  return tables.cost(model, query, Clocks::kBurst)->seconds * 1e6;
}

TEST_CASE("experts of equal loads cost what no loads at all cost") {
  for (const std::int32_t rows : {1, 3, 64, 100, 1000})
    CHECK(microseconds(Rows(16, rows)) == Approx(even_microseconds(16 * rows)).epsilon(1e-9));
}

TEST_CASE("few tokens of one row each cost what as few evenly spread ones cost") {
  Rows rows(16, 0);
  rows[3] = rows[9] = 1;
  CHECK(microseconds(rows) == Approx(even_microseconds(2)).epsilon(1e-9));
}

TEST_CASE("which expert has which load does not matter") {
  Rows rows = {900, 0, 17, 300, 1, 1, 5, 64, 128, 40, 0, 0, 2, 7, 77, 512};
  const double before = microseconds(rows);
  std::reverse(rows.begin(), rows.end());
  CHECK(microseconds(rows) == Approx(before).epsilon(1e-12));
}

TEST_CASE("one hot expert costs more than the same rows over all") {
  Rows hot(16, 8);
  hot[5] = 1928;  // together 128 for each, which fill their tiles
  CHECK(microseconds(hot) > 1.02 * even_microseconds(16 * 128));
}

TEST_CASE("more rows never cost less") {
  Rows rows(16, 4);
  double last = 0;
  for (int step = 0; step < 14; ++step) {
    const double now = microseconds(rows);
    CHECK(now >= last * (1 - 1e-9));
    last = now;
    rows[static_cast<std::size_t>(step) % 16] *= 3;
    rows[7] *= 2;
  }
}

TEST_CASE("weights of even loads add up to one, whatever the loads") {
  for (const Rows& rows : {Rows{5, 0, 0, 1}, Rows{700, 30, 2, 2}, Rows{0, 0, 0, 9}}) {
    const EvenLoads loads(rows);
    CHECK(loads.sum([](std::int64_t) { return 1.0; }) == Approx(1));
  }
}

// Whatever power of two lies between them.
TEST_CASE("loads that differ by one row are one even load of their sum") {
  for (const Rows& rows : {Rows{63, 64, 64, 63}, Rows{4, 4, 3, 4}, Rows{2, 1}, Rows{5, 5}}) {
    const EvenLoads loads(rows);
    REQUIRE(loads.end() - loads.begin() == 1);
    CHECK(loads.begin()->rows == std::accumulate(rows.begin(), rows.end(), 0));
    CHECK(loads.begin()->weight == 1);
  }
}

TEST_CASE("a table answers for no rows at all as the model does: not") {
  static const MeasuredTables tables({lab()});
  static const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  const Rows none(16, 0);
  const CostQuery query{.kind = OpKind::kGroupedGemm,
                        .shape = {.n = 4096, .k = 7168, .groups = 16},
                        .dtype = DType::kBf16,
                        .cores = 132,
                        .rows = none};
  CHECK(!tables.cost(model, query, Clocks::kBurst));
}

TEST_CASE("a layer far from all that was measured is left to the model") {
  static const MeasuredTables tables({lab()});
  static const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  const CostQuery query{.kind = OpKind::kGroupedGemm,
                        .shape = {.m = 512, .n = 128, .k = 128, .groups = 16},
                        .dtype = DType::kBf16,
                        .cores = 132};
  CHECK(!tables.cost(model, query, Clocks::kBurst));
}

}  // namespace
}  // namespace moebius
