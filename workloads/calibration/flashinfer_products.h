// Block FP8 products on Blackwell by FlashInfer (gemm_fp8_nt_groupwise, backend trtllm), which SGLang calls
// where its DeepGEMM is switched off.
#pragma once

#include <cstdint>
#include <span>

#include "hw/accelerator.h"

namespace moebius {

struct ProductTime {
  std::int64_t m = 0, n = 0, k = 0;
  double microseconds = 0;
};

// As sgl-project/sglang pull request 13528 prints them of a B200 (DeepSeek-V3's shapes cut in four), but for
// rows of fewer than 1,024 tokens, which are as long as their launch. DeepGEMM needs a sixth of it there.
std::span<const ProductTime> published_flashinfer_products();

// Seconds of y[m, n] = x[m, k] W[n, k]^T: tiles of 128 columns by 32 tokens, one a core at a time. A tile
// takes 11.6 us for k = 7168 and the kernel 5.5 us beside that; weights that do not fit in L2 are read again
// for every 32 tokens. Four constants for five rows, which it meets within 2.5%; more tokens gain nothing.
double flashinfer_product_seconds(const Accelerator& chip, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace moebius
