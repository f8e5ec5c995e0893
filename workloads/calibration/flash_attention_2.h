// FlashAttention-2 on Hopper, whose products it takes by instructions of the generation before: what software
// runs there that has no cuDNN attention or switches it off (NVTE_FUSED_ATTN=0).
#pragma once

#include <cstdint>
#include <span>

#include "hw/accelerator.h"
#include "workloads/calibration/attention_law.h"

namespace moebius {

struct AttentionRate {
  bool backward = false, causal = false;
  int head_dim = 0;
  std::int64_t keys = 0;  // of a sequence; 16,384 tokens in all, heads x head_dim = 2,048
  double tflops =
      0;  // forward 4 x pairs x heads x head_dim, half the pairs where causal; backward 2.5 times that
};

// As Shah et al. 2024 (FlashAttention-3) print them in figures 5 and 6 of an H100 SXM5.
std::span<const AttentionRate> published_flash_attention_2();

// Seconds of a kernel: a tile of 128 queries (backward: of keys) a core at a time passes over its keys and
// some more, in which nothing is multiplied yet; cores end half of the last tile apart. Those keys, a rate
// for each head size and a share for masked scores are its constants; it meets the published rates of 1,024
// keys and more within 9%, 1% in the median.
double flash_attention_2_seconds(const Accelerator& chip, const AttentionSize& size);

}  // namespace moebius
