#include <vector>

#include "hw/catalog.h"
#include "tests/catch.h"
#include "workloads/cost/analytic.h"

namespace moebius {
namespace {

// A100, whose products wait for those before them; 108 experts and columns of one tile are a wave of its 108
// SMs. k of 65,536 is 1,024 steps. Memory is so fast that it bounds nothing.
constexpr int kExperts = 108;
constexpr double kSteps = 1024, kClock = 1.41e9;

double experts_seconds(const Architecture& row, DType stored, std::vector<std::int32_t> rows) {
  Accelerator chip = Catalog().accelerator("a100-sxm");
  chip.memory_rate = {100e12};
  rows.resize(kExperts, 48);
  return AnalyticModel(chip, row)
      .estimate({.kind = OpKind::kGroupedGemm,
                 .shape = {.m = kExperts * 48, .n = 128, .k = 65536, .groups = kExperts},
                 .dtype = DType::kBf16,
                 .cores = kExperts,
                 .rows = rows,
                 .stored = stored},
                Clocks::kBurst)
      .seconds;
}

// A step of a tile of 64 rows computes 64 x 128 x 64 products, 1,048,576 operations at 2,048 a cycle, 512
// cycles, one of 128 rows 1,024.
TEST_CASE("experts whose rows fit in a lower tile are spared the products of a full one") {
  Architecture ampere = *find_architecture("ampere");
  REQUIRE(ampere.tiles[0].experts_m == 64);
  const double low = experts_seconds(ampere, DType::kBf16, {});
  ampere.tiles[0].experts_m = 128;
  const double full = experts_seconds(ampere, DType::kBf16, {});
  CHECK(full - low == Approx(kSteps * 512 / kClock).epsilon(0.02));
}

TEST_CASE("one expert whose rows fill more than a lower tile has full ones for all") {
  const Architecture& ampere = *find_architecture("ampere");
  const double even = experts_seconds(ampere, DType::kBf16, {});
  CHECK(experts_seconds(ampere, DType::kBf16, {64, 32}) == even);
  CHECK(experts_seconds(ampere, DType::kBf16, {65, 31}) - even ==
        Approx(kSteps * 512 / kClock).epsilon(0.02));
}

// Each step decodes 128 columns x 64 of k at 64 a cycle, 128 cycles.
TEST_CASE("weights of few bits are decoded before 16-bit products") {
  Architecture ampere = *find_architecture("ampere");
  REQUIRE(ampere.decoded == 64);
  const double decoded = experts_seconds(ampere, DType::kInt4, {});
  ampere.decoded = 0;
  CHECK(decoded - experts_seconds(ampere, DType::kInt4, {}) == Approx(kSteps * 128 / kClock).epsilon(0.02));
}

// Blackwell's tensor unit multiplies 8-bit operands by 4-bit weights as they are.
TEST_CASE("lower weights that the tensor unit takes are not decoded") {
  Architecture blackwell = *find_architecture("blackwell");
  const Accelerator chip = Catalog().accelerator("b200-sxm");
  const CostQuery query{.kind = OpKind::kGroupedGemm,
                        .shape = {.m = 2048, .n = 2048, .k = 4096, .groups = 128},
                        .dtype = DType::kFp8,
                        .cores = 148,
                        .rows = {},
                        .stored = DType::kFp4};
  const double as_it_is = AnalyticModel(chip, blackwell).estimate(query, Clocks::kBurst).seconds;
  blackwell.decoded = 1;
  CHECK(AnalyticModel(chip, blackwell).estimate(query, Clocks::kBurst).seconds == as_it_is);
}

}  // namespace
}  // namespace moebius
