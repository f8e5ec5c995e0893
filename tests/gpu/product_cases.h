// Cases of matrix products, of sizes that suit no kernel and of sizes that suit the library, with and without
// a bias.
#pragma once

#include <string>
#include <vector>

#include "tests/gpu/op_case.h"

namespace moebius {

inline OperandCase no_values(std::int64_t rows, std::int64_t columns) {
  return {rows, columns, DType::kBf16, {}};
}

// Sizes that no tile, block or team divides.
inline std::vector<OpCase> products() {
  constexpr std::int64_t m = 37, n = 70, k = 150;
  std::vector<OpCase> cases;
  for (const DType operand : {DType::kBf16, DType::kFp8}) {
    const std::string name = operand == DType::kFp8 ? " of FP8" : "";
    cases.push_back({"gemm" + name,
                     {.kind = OpKind::kGemm, .shape = {.m = m, .n = n, .k = k}},
                     {random_operand(1, m, k, operand), random_weight(2, n, k, operand, 0.1)},
                     {no_values(m, n)}});
    cases.push_back(
        {"gemm with a bias" + name,
         {.kind = OpKind::kGemm, .shape = {.m = m, .n = n, .k = k, .heads = kWithBias}},
         {random_operand(1, m, k, operand), random_weight(2, n, k, operand, 0.1), random_operand(218, n, 1)},
         {no_values(m, n)}});
    cases.push_back({"gemm_dgrad" + name,
                     {.kind = OpKind::kGemmDgrad, .shape = {.m = m, .n = k, .k = n}},
                     {random_operand(3, m, n, operand), random_weight(4, n, k, operand, 0.1)},
                     {no_values(m, k)}});
  }
  cases.push_back({"gemm of one column",
                   {.kind = OpKind::kGemm, .shape = {.m = m, .n = 1, .k = k}},
                   {random_operand(211, m, k), random_operand(212, 1, k, DType::kBf16, 0.1)},
                   {no_values(m, 1)}});
  cases.push_back({"gemm_dgrad of one column",
                   {.kind = OpKind::kGemmDgrad, .shape = {.m = m, .n = k, .k = 1}},
                   {random_operand(213, m, 1), random_operand(214, 1, k, DType::kBf16, 0.1)},
                   {no_values(m, k)}});
  cases.push_back({"gemm_wgrad of one column",
                   {.kind = OpKind::kGemmWgrad, .shape = {.m = 1, .n = k, .k = m}},
                   {random_operand(215, m, 1), random_operand(216, m, k)},
                   {random_operand(217, 1, k, DType::kFp32)}});
  cases.push_back({"gemm_wgrad into FP32",
                   {.kind = OpKind::kGemmWgrad, .shape = {.m = n, .n = k, .k = m}},
                   {random_operand(5, m, n), random_operand(6, m, k)},
                   {random_operand(7, n, k, DType::kFp32)}});
  cases.push_back({"gemm_wgrad and the gradient of a bias",
                   {.kind = OpKind::kGemmWgrad, .shape = {.m = n, .n = k, .k = m, .heads = kWithBias}},
                   {random_operand(5, m, n), random_operand(6, m, k)},
                   {random_operand(7, n, k, DType::kFp32), random_operand(219, n, 1, DType::kFp32)}});
  cases.push_back({"gemm_wgrad into BF16",
                   {.kind = OpKind::kGemmWgrad, .shape = {.m = n, .n = k, .k = m}},
                   {random_operand(5, m, n), random_operand(6, m, k)},
                   {random_operand(7, n, k)}});
  return cases;
}

// Of 8 bits in sizes that the library takes; two blocks of scales along each side that has some.
inline std::vector<OpCase> aligned_products() {
  constexpr std::int64_t m = 144, n = 208, k = 240;
  std::vector<OpCase> cases;
  cases.push_back({"gemm of FP8, aligned",
                   {.kind = OpKind::kGemm, .shape = {.m = m, .n = n, .k = k}},
                   {random_operand(201, m, k, DType::kFp8), random_weight(202, n, k, DType::kFp8, 0.1)},
                   {no_values(m, n)}});
  cases.push_back({"gemm of FP8 with a bias, aligned",
                   {.kind = OpKind::kGemm, .shape = {.m = m, .n = n, .k = k, .heads = kWithBias}},
                   {random_operand(201, m, k, DType::kFp8), random_weight(202, n, k, DType::kFp8, 0.1),
                    random_operand(220, n, 1)},
                   {no_values(m, n)}});
  cases.push_back({"gemm of FP8, aligned, rows on both sides",
                   {.kind = OpKind::kGemm, .shape = {.m = m, .n = n, .k = k}},
                   {random_operand(203, m, k, DType::kFp8), random_operand(204, n, k, DType::kFp8, 0.1)},
                   {no_values(m, n)}});
  cases.push_back({"gemm_dgrad of FP8, aligned",
                   {.kind = OpKind::kGemmDgrad, .shape = {.m = m, .n = k, .k = n}},
                   {random_operand(205, m, n, DType::kFp8), random_weight(206, n, k, DType::kFp8, 0.1)},
                   {no_values(m, k)}});
  return cases;
}

}  // namespace moebius
