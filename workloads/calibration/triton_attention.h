// FlashAttention as it was written in Triton in 2023, on A100: what LLM Foundry trained MPT with, before
// FlashAttention-2 could take its biases.
#pragma once

#include <cstdint>
#include <span>

#include "hw/accelerator.h"
#include "workloads/calibration/attention_law.h"

namespace moebius {

struct AttentionTime {
  bool backward = false;
  int heads = 0, head_dim = 0;
  std::int64_t keys = 0;  // of each of 4 sequences, causal
  double milliseconds = 0;
};

// Of dense attention, as Microsoft's Phi-3-small prints them below its kernels (A100, Triton of May 2023).
std::span<const AttentionTime> published_triton_attention();

// Seconds of a kernel: tiles of 128 queries (backward: of keys) pass over their keys and some more, at a
// rate; a rate and those keys for each head size are its constants. It meets the times of 1,024 keys and more
// within 1% for heads of 128, within 10% for heads of 64, of which two sets differ by 20% forward.
double triton_attention_seconds(const Accelerator& chip, const AttentionSize& size);

}  // namespace moebius
