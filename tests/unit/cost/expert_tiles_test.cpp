#include <vector>

#include "hw/catalog.h"
#include "tests/catch.h"
#include "workloads/cost/analytic.h"

namespace moebius {
namespace {

double experts_seconds(const Architecture& row, const char* chip, const Shape& shape, DType stored,
                       const std::vector<std::int32_t>& rows = {}) {
  const AnalyticModel model(Catalog().accelerator(chip), row);
  return model
      .estimate({.kind = OpKind::kGroupedGemm,
                 .shape = shape,
                 .dtype = DType::kBf16,
                 .cores = 108,
                 .rows = rows,
                 .stored = stored},
                Clocks::kBurst)
      .seconds;
}

// A100, 108 SMs, synchronous products. 128 experts of 48 rows, 2048 columns in tiles of 128: 2048 tiles make
// 19 waves of 64 steps (k 4096). A step of a tile of 64 rows computes 64 x 128 x 64 products, 1,048,576
// operations at 2048 a cycle, 512 cycles, one of 128 rows 1,024; both prepare for `step_cycles` first.
TEST_CASE("experts whose rows fit in a lower tile are spared the products of a full one") {
  Architecture ampere = *find_architecture("ampere");
  const Shape shape{.m = 128 * 48, .n = 2048, .k = 4096, .groups = 128};
  REQUIRE(ampere.tiles[0].experts_m == 64);
  const double low = experts_seconds(ampere, "a100-sxm", shape, DType::kBf16);
  ampere.tiles[0].experts_m = 128;
  const double full = experts_seconds(ampere, "a100-sxm", shape, DType::kBf16);
  // Wires and operands in flight bound some steps, so that less than the 512 cycles may be left.
  const double clock = 1.41e9, waves = 19, steps = 64;
  CHECK(full - low > 0.2 * waves * steps * 512 / clock);
  CHECK(full - low <= waves * steps * 512 / clock * 1.01);
}

TEST_CASE("one expert whose rows fill more than a lower tile has full ones for all") {
  const Architecture& ampere = *find_architecture("ampere");
  const Shape shape{.m = 128 * 48, .n = 2048, .k = 4096, .groups = 128};
  std::vector<std::int32_t> rows(128, 48);
  const double even = experts_seconds(ampere, "a100-sxm", shape, DType::kBf16, rows);
  rows[0] = 65;
  rows[1] = 31;
  CHECK(experts_seconds(ampere, "a100-sxm", shape, DType::kBf16, rows) > even);
}

// As above, with weights of 4 bits: 48 rows fit in tiles of 64 (doublings from 16), and each step decodes 128
// columns x 64 of k at 64 a cycle, 128 cycles.
TEST_CASE("weights of few bits are decoded before 16-bit products") {
  Architecture ampere = *find_architecture("ampere");
  const Shape shape{.m = 128 * 48, .n = 2048, .k = 4096, .groups = 128};
  REQUIRE(ampere.decoded == 64);
  const double decoded = experts_seconds(ampere, "a100-sxm", shape, DType::kInt4);
  ampere.decoded = 0;
  const double free = experts_seconds(ampere, "a100-sxm", shape, DType::kInt4);
  CHECK(decoded - free == Approx(19 * 64 * 128 / 1.41e9).epsilon(0.02));
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
