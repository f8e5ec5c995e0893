#include "real/cuda/fp8_gemm.h"

#include "hw/error.h"

namespace moebius::cuda {
namespace {

// Blocks of scales along k that begin with the operand, and all of its own.
bool starts_a_block(const Operand& x, bool k_contiguous) {
  if (x.storage == Storage::kFp8Rows) return k_contiguous;
  if (x.storage == Storage::kFp8Columns) return !k_contiguous && x.first_row % kScaleBlock == 0;
  return x.storage == Storage::kFp8Blocks && x.first_row % x.period == 0 && x.rows <= x.period;
}

const std::uint8_t* first_code(const Operand& x) {
  return static_cast<const std::uint8_t*>(x.data) + x.first_row * x.columns;
}

ScaleForm form_of(const Operand& x) {
  return x.storage == Storage::kFp8Blocks ? ScaleForm::kBlocks : ScaleForm::kVectors;
}

}  // namespace

bool has_library_form(const Gemm& g) {
  constexpr std::int64_t kAlongK = 16, kAlongRows = 4, kAlongResult = 8;
  return starts_a_block(g.a, !g.a_transposed) && starts_a_block(g.b, g.b_transposed) &&
         !is_scaled(g.c.storage) && !(form_of(g.a) == ScaleForm::kBlocks && form_of(g.b) == form_of(g.a)) &&
         g.k() % kAlongK == 0 && g.m() % kAlongRows == 0 && g.n() % kAlongResult == 0 && g.m() > 0 &&
         g.n() > 0 && g.k() > 0;
}

Fp8Scratch scratch_of_side(const Operand& x, bool k_contiguous) {
  Fp8Scratch need;
  if (!k_contiguous) need.code_bytes = x.elements();
  if (x.storage == Storage::kFp8Rows) need.scales = x.rows * blocks_of(x.columns);
  if (x.storage == Storage::kFp8Blocks && !k_contiguous)
    need.scales = blocks_of(x.columns) * block_scale_stride(x.rows);
  return need;
}

Fp8Side library_side(Stream stream, const Operand& x, bool k_contiguous, std::uint8_t* codes, float* scales) {
  CHECK(starts_a_block(x, k_contiguous), "scales that begin elsewhere than the operand");
  Fp8Side side{first_code(x), x.scales + scale_index(x, 0, 0), form_of(x)};
  if (!k_contiguous) {
    transpose_codes(stream, x, codes);
    side.codes = codes;
  }
  if (scratch_of_side(x, k_contiguous).scales > 0) {
    x.storage == Storage::kFp8Rows ? order_row_scales(stream, x, scales)
                                   : transpose_block_scales(stream, x, scales);
    side.scales = scales;
  }
  return side;
}

Fp8Product library_shape(const Gemm& g) {
  Fp8Product shape{
      .m = g.m(), .n = g.n(), .k = g.k(), .a = {}, .b = {}, .c = g.c, .accumulate = g.accumulate};
  shape.a.form = form_of(g.a);
  shape.b.form = form_of(g.b);
  return shape;
}

}  // namespace moebius::cuda
