// Operands stored in another format than they are multiplied in, and GEMMs whose measured times contain the
// quantisation of their activations.
#include "hw/catalog.h"
#include "models/layer_math.h"
#include "workloads/cost/fused_quantise.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

ProfileTable gemm_table(DType dtype, std::vector<float> microseconds) {
  ProfileTable table;
  table.name = "dense GEMM";
  table.kinds = {"gemm"};
  table.dtype = dtype;
  table.stack = "lab-1";
  table.cores = 132;
  table.site_keys = {ProfileKey::kN, ProfileKey::kK};
  table.axes = {{ProfileKey::kM, {128, 1024, 8192}}};
  table.sites = {{4096, 7168}};
  table.microseconds = std::move(microseconds);
  return table;
}

// Twice what the device memory needs for 7168 columns.
ProfileTable quantise_table(const std::string& stack, float factor) {
  ProfileTable table = gemm_table(DType::kFp8, {5 * factor, 10 * factor, 80 * factor});
  table.name = "quantise";
  table.kinds = {"quantise"};
  table.stack = stack;
  table.site_keys = {ProfileKey::kN};
  table.sites = {{7168}};
  return table;
}

MeasuredTables tables_of(std::vector<ProfileTable> tables) {
  Profile profile;
  profile.accelerator = "h200-sxm";
  profile.reference = Catalog().accelerator("h200-sxm");
  profile.tables = std::move(tables);
  return MeasuredTables({profile});
}

CostQuery gemm(DType dtype, std::int64_t m) {
  return {.kind = OpKind::kGemm, .shape = {.m = m, .n = 4096, .k = 7168}, .dtype = dtype, .cores = 132};
}

TEST_CASE("a table of BF16 over INT8 answers for that and for nothing else") {
  ProfileTable mixed = gemm_table(DType::kBf16, {15, 120, 900});
  mixed.stored = DType::kInt8;
  const MeasuredTables tables = tables_of({mixed});
  const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  CostQuery query = gemm(DType::kBf16, 1024);
  CHECK_FALSE(tables.cost(model, query, Clocks::kBurst));
  query.stored = DType::kInt4;
  CHECK_FALSE(tables.cost(model, query, Clocks::kBurst));
  query.stored = DType::kInt8;
  REQUIRE(tables.cost(model, query, Clocks::kBurst));
  CHECK(tables.cost(model, query, Clocks::kBurst)->seconds == Approx(120e-6));
  CHECK(tables.cost(model, query, Clocks::kBurst)->origin == Origin::kMeasured);
}

// A storage that no table has must not beat one that a table has by leaving the tables.
TEST_CASE("of a storage without a table the one of the arithmetic tells, by what the model says of both") {
  const MeasuredTables tables = tables_of({gemm_table(DType::kFp8, {30, 240, 1800})});
  const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  for (const std::int64_t m : {128, 8192}) {
    const CostQuery plain = gemm(DType::kFp8, m);
    CostQuery packed = plain;
    packed.stored = DType::kInt4;
    const auto as_stored = tables.cost(model, packed, Clocks::kBurst);
    const auto as_multiplied = tables.cost(model, plain, Clocks::kBurst);
    REQUIRE(as_stored);
    REQUIRE(as_multiplied);
    const double ratio =
        model.estimate(packed, Clocks::kBurst).seconds / model.estimate(plain, Clocks::kBurst).seconds;
    CHECK(as_stored->seconds == Approx(ratio * as_multiplied->seconds));
    CHECK(as_stored->origin == Origin::kExtrapolated);
    CHECK(as_stored->error > as_multiplied->error);
  }
}

// x[m,k] and y[m,n] in 2 bytes, W[n,k] in 1 + 0 bytes: INT8 has no block scales.
TEST_CASE("the bytes of a GEMM are those of what is stored") {
  CostQuery query = gemm(DType::kBf16, 64);
  query.stored = DType::kInt8;
  CHECK(least_bytes(query) == 64.0 * 7168 * 2 + 4096.0 * 7168 + 64.0 * 4096 * 2);
  query.kind = OpKind::kGroupedGemm;
  query.shape.groups = 8;
  CHECK(least_bytes(query) == 64.0 * 7168 * 2 + 8 * 4096.0 * 7168 + 64.0 * 4096 * 2);
  query.kind = OpKind::kGemmWgrad;  // both operands are activations
  CHECK(least_bytes(query) == op_bytes(OpKind::kGemmWgrad, query.shape, DType::kBf16).value);
}

// dW[m,n] += dy[k,m] x[k,n]: what is kept is read and written, in 4 or in 2 bytes.
TEST_CASE("gradients that are summed in 16 bits move half the bytes") {
  const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  CostQuery query{.kind = OpKind::kGemmWgrad,
                  .shape = {.m = 12288, .n = 12288, .k = 2048},
                  .dtype = DType::kBf16,
                  .cores = 132,
                  .rows = {}};
  for (const OpKind kind : {OpKind::kGemmWgrad, OpKind::kGroupedGemmWgrad}) {
    query.kind = kind;
    query.shape.groups = kind == OpKind::kGroupedGemmWgrad ? 4 : 0;
    const double matrices = std::max(1, query.shape.groups);
    query.summed = DType::kFp32;
    const double whole = least_bytes(query), slow = model.estimate(query, Clocks::kSustained).seconds;
    query.summed = DType::kBf16;
    CHECK(whole - least_bytes(query) == matrices * 12288 * 12288 * 4);
    CHECK(model.estimate(query, Clocks::kSustained).seconds < slow);
  }
}

TEST_CASE("the model trusts itself less where it does not know how weights are widened") {
  const Accelerator chip = Catalog().accelerator("h200-sxm");
  const AnalyticModel model(chip);
  CostQuery query{.kind = OpKind::kGemm,
                  .shape = {.m = 64, .n = 4096, .k = 4096},
                  .dtype = DType::kBf16,
                  .cores = 132,
                  .rows = {}};
  const float same = model.error(query);
  query.stored = DType::kInt4;
  CHECK(model.error(query) > 2 * same);
  query.kind = OpKind::kAttention;
  CHECK(model.error(query) < 0.3F);  // FP8 caches are among the rows that attention's error was measured on
}

TEST_CASE("INT4 is multiplied in the next wider type that the chip has") {
  Accelerator chip = Catalog().accelerator("h200-sxm");
  CHECK(executed_dtype(chip, DType::kInt4) == DType::kInt8);
  chip.peak[static_cast<int>(DType::kInt8)] = {0};
  CHECK(executed_dtype(chip, DType::kInt4) == DType::kBf16);
}

TEST_CASE("a GEMM that quantises its activations costs the whole measured time, another its share") {
  ProfileTable whole = gemm_table(DType::kFp8, {20, 75, 520});
  whole.includes = {"quantise"};
  const MeasuredTables tables = tables_of({quantise_table("lab-1", 1), whole});
  const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  CostQuery query = gemm(DType::kFp8, 1024);
  const double bare = tables.cost(model, query, Clocks::kBurst)->seconds;
  const double gemm_model = model.estimate(query, Clocks::kBurst).seconds;
  CHECK(bare == Approx(75e-6 * gemm_model / (gemm_model + 10e-6)));
  CHECK(tables.cost(model, query, Clocks::kBurst)->origin == Origin::kInterpolated);
  query.fused_quantise = true;
  CHECK(tables.cost(model, query, Clocks::kBurst)->seconds == Approx(75e-6));
  CHECK(tables.cost(model, query, Clocks::kBurst)->origin == Origin::kMeasured);
}

// A stack's own table of quantisation has all its passes; another stack's counts once a pass.
TEST_CASE("passes of quantisation are taken from the table's own stack, else from another's, else modelled") {
  ProfileTable whole = gemm_table(DType::kFp8, {20, 75, 520});
  whole.includes = {"quantise", "quantise"};
  const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  const CostQuery query = gemm(DType::kFp8, 1024);
  const double gemm_model = model.estimate(query, Clocks::kBurst).seconds;
  const double pass_model = model.estimate(*quantise_of(query), Clocks::kBurst).seconds;
  const auto share = [&](double quantise) { return Approx(75e-6 * gemm_model / (gemm_model + quantise)); };
  const auto told = [&](std::vector<ProfileTable> all) {
    return tables_of(std::move(all)).cost(model, query, Clocks::kBurst)->seconds;
  };
  CHECK(told({quantise_table("lab-2", 1), quantise_table("lab-1", 3), whole}) == share(30e-6));
  CHECK(told({quantise_table("lab-2", 1), whole}) == share(20e-6));
  CHECK(told({whole}) == share(2 * pass_model));
}

TEST_CASE("between grid points the whole and its share rise with the rows and stay over the roofline") {
  ProfileTable whole = gemm_table(DType::kFp8, {20, 75, 520});
  whole.includes = {"quantise"};
  const MeasuredTables tables = tables_of({quantise_table("lab-1", 1), whole});
  const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  double last_whole = 0, last_bare = 0;
  for (std::int64_t m = 16; m <= 16384; m += m / 4) {
    CostQuery query = gemm(DType::kFp8, m);
    const double bare = tables.cost(model, query, Clocks::kSustained)->seconds;
    const double bound = roofline(Catalog().accelerator("h200-sxm"), query).seconds();
    query.fused_quantise = true;
    const double all = tables.cost(model, query, Clocks::kSustained)->seconds;
    INFO(m);
    CHECK(bare >= bound);
    CHECK(bare < all);
    CHECK(bare >= last_bare * 0.97);  // a step of tiles takes more of the whole than the passes gain
    CHECK(all >= last_whole);
    last_whole = all;
    last_bare = bare;
  }
}

TEST_CASE("a bare table and the model pay the quantisation on top when the op does it itself") {
  const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  const MeasuredTables tables =
      tables_of({quantise_table("lab-1", 1), gemm_table(DType::kFp8, {20, 75, 520})});
  CostQuery query = gemm(DType::kFp8, 1024);
  query.fused_quantise = true;
  CHECK(tables.cost(model, query, Clocks::kBurst)->seconds == Approx(75e-6 + 10e-6));
  // Without a profile: the model's GEMM and the model's pass.
  const auto modelled = make_cost_source(Catalog().accelerator("mi300x"), std::vector<Profile>{});
  CostQuery apart = query;
  apart.fused_quantise = false;
  CHECK(modelled->cost(query).seconds ==
        Approx(modelled->cost(apart).seconds + modelled->cost(*quantise_of(query)).seconds));
  // BF16 has nothing to quantise.
  query.dtype = apart.dtype = DType::kBf16;
  CHECK(modelled->cost(query).seconds == modelled->cost(apart).seconds);
}

TEST_CASE("a table that includes what no model takes out is an error") {
  ProfileTable table = gemm_table(DType::kFp8, {20, 75, 520});
  table.includes = {"norm"};
  CHECK_THROWS_WITH(tables_of({table}),
                    "profile table \"dense GEMM\": includes: expected \"quantise\", found \"norm\"");
}

}  // namespace
}  // namespace moebius
