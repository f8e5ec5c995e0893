// Products of all experts by whole warpgroups against those by warps: sizes that no tile divides, experts of
// one row and of none.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "tests/gpu/grouped_operands.h"

namespace moebius {
namespace {

// More than a tile, one row, none, less than a warpgroup's rows, a whole tile.
const std::vector<std::int32_t> kRows = {150, 1, 0, 40, 128, 70};

std::string name_of(const GroupedCase& one) {
  const char* kind = one.kind == GroupedKind::kForward ? "forward"
                     : one.kind == GroupedKind::kDgrad ? "dgrad"
                                                       : "wgrad";
  return fmt::format("{} {}, n {}, k {}", is_scaled(one.operands) ? "fp8" : "bf16", kind, one.n, one.k);
}

void check_by_warpgroups(const GroupedCase& one) {
  GroupedOperands operands(one);
  INFO(name_of(one) << (one.result == cuda::Storage::kFp32 ? " into FP32" : ""));
  if (!operands.suits_warpgroups()) {
    WARN("no warpgroups here");
    return;
  }
  const std::vector<float> expected = operands.result([&] { operands.multiply_by_warps(); });
  // Tensor cores add 8-bit products up in fewer bits than FP32 has, in an order of their own.
  const double sums = is_scaled(one.operands) ? 1e-2 : 1e-3;
  const double rounding = one.result == cuda::Storage::kFp32 ? sums : 0x1p-5 + sums;
  for (const int width : {128, 256}) {
    INFO("width " << width);
    const std::vector<float> found = operands.result([&] {
      operands.turn();
      operands.multiply_by_warpgroups(width);
    });
    CHECK(difference(found, expected) < rounding);
  }
}

}  // namespace

TEST_CASE("warpgroups multiply BF16 rows by the weights of their experts") {
  NEEDS_DEVICE();
  for (const auto result : {cuda::Storage::kBf16, cuda::Storage::kFp32}) {
    check_by_warpgroups({.rows = kRows, .n = 336, .k = 424, .result = result});
    check_by_warpgroups({.kind = GroupedKind::kDgrad, .rows = kRows, .n = 136, .k = 328, .result = result});
  }
}

TEST_CASE("warpgroups add the products of each expert's rows to its weight gradient") {
  NEEDS_DEVICE();
  for (const auto result : {cuda::Storage::kBf16, cuda::Storage::kFp32}) {
    check_by_warpgroups({.kind = GroupedKind::kWgrad, .rows = kRows, .n = 200, .k = 328, .result = result});
    check_by_warpgroups({.kind = GroupedKind::kWgrad,
                         .rows = kRows,
                         .n = 208,
                         .k = 336,
                         .operands = cuda::Storage::kFp8Columns,
                         .result = result});
  }
}

TEST_CASE("warpgroups multiply 8-bit rows by the weights of their experts") {
  NEEDS_DEVICE();
  for (const auto result : {cuda::Storage::kBf16, cuda::Storage::kFp32}) {
    check_by_warpgroups(
        {.rows = kRows, .n = 336, .k = 912, .operands = cuda::Storage::kFp8Rows, .result = result});
    check_by_warpgroups({.kind = GroupedKind::kDgrad,
                         .rows = kRows,
                         .n = 176,
                         .k = 336,
                         .operands = cuda::Storage::kFp8Rows,
                         .result = result});
  }
}

TEST_CASE("warpgroups leave alone what does not begin at 16 bytes") {
  NEEDS_DEVICE();
  CHECK_FALSE(warpgroups_take(GroupedOperands({.rows = {3, 4}, .n = 24, .k = 20}).all()));
  CHECK_FALSE(warpgroups_take(
      GroupedOperands({.rows = {3, 4}, .n = 32, .k = 24, .operands = cuda::Storage::kFp8Rows}).all()));
}

}  // namespace moebius
