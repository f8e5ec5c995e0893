// What a board draws while a kernel runs.
#include "workloads/cost/power.h"

#include "hw/catalog.h"
#include "models/layer_math.h"
#include "workloads/cost/roofline.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

Profile profile() {
  Profile profile;
  profile.power.idle = 130;
  profile.power.limit = 700;
  profile.power.joule_per_byte = 1e-10;
  profile.power.joule_per_flop[static_cast<std::size_t>(DType::kBf16)] = 8e-13;
  profile.power.joule_per_flop[static_cast<std::size_t>(DType::kFp8)] = 5e-13;
  return profile;
}

Accelerator h200() {
  return Catalog().accelerator("h200-sxm");
}

CostQuery gemm(DType dtype) {
  return {.kind = OpKind::kGemm, .shape = {.m = 64, .n = 4096, .k = 4096}, .dtype = dtype, .cores = 132};
}

// 2 * 64 * 4096 * 4096 = 2.147 GFLOP in 20 us are 107.4 TFLOP/s: 85.9 W; 40 MB are 2 TB/s: 200 W.
TEST_CASE("a kernel draws for its bytes and its products beside what the board draws idle") {
  const BoardPower power(h200(), {profile()});
  const Cost cost{.seconds = 20e-6, .memory_bytes = 40e6};
  CHECK(power.watts(gemm(DType::kBf16), cost) == Approx(130 + 85.9 + 200).epsilon(1e-3));
  CHECK(power.watts(gemm(DType::kFp8), cost) == Approx(130 + 53.7 + 200).epsilon(1e-3));
  // Half the time, twice the rates: over the limit nothing is drawn.
  CHECK(power.watts(gemm(DType::kBf16), {.seconds = 5e-6, .memory_bytes = 40e6}) == 700);
}

TEST_CASE("a board with a lower limit stays under it") {
  Accelerator capped = h200();
  capped.power = {400};
  const BoardPower power(capped, {profile()});
  CHECK(power.watts(gemm(DType::kBf16), {.seconds = 5e-6, .memory_bytes = 40e6}) == 400);
}

TEST_CASE("a board of other power than the measured one has its own limit, lower or higher") {
  Profile measured = profile();
  measured.accelerator = "h200-sxm";
  measured.reference = h200();
  measured.power.limit = 650;
  CHECK(board_limit(h200(), measured) == 650);
  Accelerator changed = h200();
  for (const double watts : {400.0, 690.0, 1500.0}) {
    changed.power = {watts};
    CHECK(board_limit(changed, measured) == watts);
  }
}

TEST_CASE("a type that the chip multiplies in a wider one draws as that one") {
  Accelerator chip = h200();
  chip.peak[static_cast<int>(DType::kFp8)] = {0};
  const BoardPower power(chip, {profile()});
  const Cost cost{.seconds = 20e-6, .memory_bytes = 40e6};
  CHECK(power.watts(gemm(DType::kFp8), cost) == power.watts(gemm(DType::kBf16), cost));
}

TEST_CASE("what no one measured is not known, which is zero") {
  const Cost cost{.seconds = 20e-6, .memory_bytes = 40e6};
  CHECK(BoardPower(h200(), {}).watts(gemm(DType::kBf16), cost) == 0);
  CHECK(BoardPower(h200(), {Profile()}).watts(gemm(DType::kBf16), cost) == 0);
  CHECK(BoardPower(h200(), {profile()}).watts(gemm(DType::kInt8), cost) == 0);  // has a peak, and no energy
}

TEST_CASE("kernels that run at memory speed draw for their bytes alone") {
  const CostQuery norm{
      .kind = OpKind::kNorm, .shape = {.m = 4096, .n = 7168}, .dtype = DType::kInt8, .cores = 132};
  CHECK(BoardPower(h200(), {profile()}).watts(norm, {.seconds = 20e-6, .memory_bytes = 40e6}) == Approx(330));
}

}  // namespace
}  // namespace moebius
