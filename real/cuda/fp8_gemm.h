// Products of e4m3 codes as cuBLASLt takes them on Hopper: both operands with k contiguous, and their scales
// in the library's order (cuBLAS documentation, "128-element 1D and 128x128 2D Block Scaling For FP8").
#pragma once

#include <cstdint>

#include "real/cuda/kernels.h"

namespace moebius::cuda {

enum class ScaleForm : std::uint8_t {
  kVectors,  // one per row and kScaleBlock of k: scales[k / kScaleBlock][row]
  kBlocks,  // one per kScaleBlock rows and kScaleBlock of k: scales[row / kScaleBlock][k / kScaleBlock], rows
            // of block_scale_stride(k)
};

// One operand: codes[rows][k].
struct Fp8Side {
  const std::uint8_t* codes = nullptr;
  const float* scales = nullptr;  // at 16 bytes
  ScaleForm form = ScaleForm::kVectors;
};

// c[m,n] = a[m,k] b[n,k]^T, or += when it accumulates.
struct Fp8Product {
  std::int64_t m = 0, n = 0, k = 0;
  Fp8Side a, b;
  Operand c;  // BF16 or FP32
  bool accumulate = false;
};

// Whether a product of 8-bit operands can be brought into that form: shapes that the library's alignment
// admits, blocks of scales that begin where the operands do, and not blocks of both.
bool has_library_form(const Gemm& product);

// What it takes: an operand that is stored the other way round is transposed, scales are put in order. Those
// that stand right already are used where they are.
struct Fp8Scratch {
  std::int64_t code_bytes = 0, scales = 0;
};
Fp8Scratch scratch_of_side(const Operand& x, bool k_contiguous);
// x, with k along its columns when `k_contiguous`, else along its rows. The scratch: Fp8Scratch of each.
Fp8Side library_side(Stream stream, const Operand& x, bool k_contiguous, std::uint8_t* codes, float* scales);
// The same without data: the form that the side will have.
Fp8Product library_shape(const Gemm& product);

}  // namespace moebius::cuda
