#include <cmath>
#include <filesystem>
#include <fstream>

#include "hw/catalog.h"
#include "hw/document.h"
#include "workloads/calibration/experts/expert_fit.h"
#include "workloads/calibration/experts/expert_load.h"
#include "workloads/calibration/experts/expert_screen.h"
#include "workloads/calibration/page/accuracy_table.h"
#include "workloads/cost/table.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

Accelerator h200() {
  return Catalog().accelerator("h200-sxm");
}

ExpertRow row_of(std::int64_t tokens, int ranks) {
  ExpertRow row;
  row.layer = {.hidden = 4096, .width = 1536, .experts = 128, .active = 8, .stored = {}};
  row.tokens = tokens;
  row.distribution = "balanced";
  const ExpertGroup group{.tokens = tokens, .active = 8, .experts = 128, .ranks = ranks};
  row.routings = std::make_shared<const std::vector<std::vector<std::int32_t>>>(1, balanced_load(group));
  return row;
}

// Kernels that take 1.4 times what the model says of the GEMMs, and the model's own passes.
double made_up(const ExpertRow& row) {
  static const AnalyticModel model(h200());
  double seconds = 0;
  for (CostQuery query : expert_kernels(row.layer, row.tokens, row.routings->front(), h200().cores)) {
    const bool gemm = is_expert_gemm(query);
    if (gemm) query.shape.m = static_cast<std::int64_t>(row.tokens * 8 / 128 * query.shape.groups);
    if (gemm) query.rows = {};
    seconds += (gemm ? 1.4 : 1.0) * model.estimate(query, Clocks::kBurst).seconds;
  }
  return seconds * 1e6;
}

ExpertDraft made_up_draft() {
  ExpertDraft draft;
  draft.table.stack = "lab-1";
  draft.table.source = "LAB";
  draft.table.cores = h200().cores;
  int number = 0;
  for (int ranks = 1; ranks <= 32; ranks *= 2)
    for (std::int64_t tokens = 16; tokens <= 16384; tokens *= 2) {
      ExpertRow row = row_of(tokens, ranks);
      row.microseconds = made_up(row);
      row.kept_out = ++number % 5 == 0;
      row.check = number % 5 == 2;
      draft.rows.push_back(std::move(row));
    }
  return draft;
}

TEST_CASE("expert layers whose GEMMs are slower than the model by one factor are told to within 3%") {
  const std::vector<ProfileTable> tables = fit_experts(made_up_draft(), h200());
  REQUIRE(tables.size() == 1);  // both reductions are long
  CHECK(tables[0].held_out.rows == 13);
  CHECK(tables[0].held_out.p90 < 0.03);
  CHECK(tables[0].sites.size() == 12);  // up and down of six ranks' sizes
  REQUIRE(tables[0].held_out.parts.size() == 1);
  CHECK(tables[0].held_out.parts[0].name == "balanced");
}

TEST_CASE("tables of experts do not speak of absorbed projections") {
  Profile profile;
  profile.reference = h200();
  profile.tables = fit_experts(made_up_draft(), h200());
  const CostQuery absorbed{.kind = OpKind::kGroupedGemm,
                           .shape = {.m = 128 * 64, .n = 512, .k = 128, .groups = 128},
                           .cores = h200().cores};
  CHECK(!MeasuredTables({profile}).cost(AnalyticModel(h200()), absorbed, Clocks::kBurst));
}

TEST_CASE("short reductions have a table of their own, which does not speak of absorbed projections either") {
  const ProfileTable narrow = expert_table({}, true), wide = expert_table({}, false);
  for (const ProfileTable& table : {narrow, wide}) {
    bool speaks = true;
    for (const ProfileRange& range : table.where)
      speaks = speaks && (range.key == ProfileKey::kN ? 512 : 128) >= range.low;
    CHECK(!speaks);
  }
}

TEST_CASE("parts of the held-out errors stand in the profile and in the table for people") {
  Profile profile;
  profile.accelerator = "h200-sxm";
  profile.reference = h200();
  profile.sources = {{"LAB", "made up for tests", "none", "2026-01-01"}};
  profile.tables = fit_experts(made_up_draft(), h200());
  const Profile again = profile_from(parse_document(to_json(profile), "profile"));
  REQUIRE(again.tables[0].held_out.parts.size() == 1);
  CHECK(again.tables[0].held_out.parts[0].rows == 13);
  CHECK(accuracy_table({again}).find("expert GEMMs: balanced") != std::string::npos);
}

TEST_CASE("a row slower than the same layer with more tokens was not tuned") {
  std::vector<ExpertRow> rows;
  for (const std::int64_t tokens : {64, 128, 256}) rows.push_back(row_of(tokens, 1));
  rows[0].microseconds = 160;
  rows[1].microseconds = 100;
  rows[2].microseconds = 110;
  const auto rejected = reject_untuned(rows);
  REQUIRE(rejected.size() == 1);
  CHECK(rejected[0].rows == 1);
  CHECK(rows.size() == 2);
}

TEST_CASE("a row twice as slow as the same layer under other loads was not tuned, unless it has more to do") {
  std::vector<ExpertRow> rows = {row_of(512, 4), row_of(512, 4), row_of(512, 4)};
  const auto hot = std::vector<std::vector<std::int32_t>>(1, std::vector<std::int32_t>(32, 96));
  rows[1].distribution = "hot";  // three times the rows
  rows[1].routings = std::make_shared<const std::vector<std::vector<std::int32_t>>>(hot);
  rows[2].distribution = "slow";
  rows[0].microseconds = 100;
  rows[1].microseconds = 290;
  rows[2].microseconds = 210;
  reject_untuned(rows);
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].distribution == "hot");
}

TEST_CASE("rows that beat the memory's rate on their weights were served from the cache") {
  // 128 experts of 3 x 4096 x 1536 weights of two bytes: 4.8 GB, a millisecond at 4.8 TB/s.
  std::vector<ExpertRow> rows = {row_of(512, 1), row_of(512, 1)};
  rows[0].microseconds = 900;
  rows[1].microseconds = 1100;
  const auto rejected = reject_cached(rows, h200());
  REQUIRE(rejected.size() == 1);
  CHECK(rejected[0].rows == 1);
  CHECK(rows[0].microseconds == 1100);
}

TEST_CASE("loads rebalanced over more slots make the hottest rank cooler") {
  ExpertGroup group{.tokens = 4096, .active = 8, .experts = 256, .ranks = 32, .slots = 288};
  double drawn = 0, balanced = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const std::int32_t rows : power_law_load(group, 1.2, seed)) drawn += rows / 10.0;
    const auto slots = rebalanced_load(group, 1.2, seed);
    CHECK(slots.size() == 288 / 32);
    for (const std::int32_t rows : slots) balanced += rows / 10.0;
  }
  CHECK(balanced < 1.1 * 4096 * 8 / 32);
  CHECK(drawn > 1.5 * 4096 * 8 / 32);
}

}  // namespace
}  // namespace moebius
