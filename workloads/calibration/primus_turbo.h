// What AMD's Primus-Turbo measured of its kernels on an MI300X, by torch.utils.benchmark
// (AMD-AGI/Primus-Turbo, benchmark/results_optimized, commit 221d75f of April 2026; FP8 in blocks: commit
// 764d7a9). TFLOP/s as printed: of the time in which also both operands of FP8 products are quantised.
#pragma once

#include <cstdint>
#include <span>

namespace moebius {

struct PassRates {
  double forward = 0, backward = 0;  // backward: of both products, of twice the operations
};

// y[m,n] = x[m,k] W[n,k]: hipBLASLt; FP8 in blocks Triton.
struct ProductRates {
  std::int64_t m = 0, n = 0, k = 0;
  PassRates bf16, fp8_tensor, fp8_block;
};

// The same of as many rows for each of some experts: Composable Kernel. FP8 has scales per tensor and no
// backward pass, whose kernels of that commit reach a tenth of the rate forward.
struct ExpertRates {
  int groups = 0;
  std::int64_t rows = 0, n = 0, k = 0;  // rows of one expert
  PassRates bf16;
  double fp8 = 0;  // 0: not taken
};

// Causal, whole sequences, BF16: AITER. Half of the pairs are counted, backward 2.5 times the operations.
struct AttentionRates {
  int sequences = 0;
  std::int64_t queries = 0;  // of one sequence
  int heads = 0, kv_heads = 0, head_dim = 0, v_dim = 0;
  PassRates bf16;
};

std::span<const ProductRates> primus_turbo_products();
std::span<const ExpertRates> primus_turbo_experts();
std::span<const AttentionRates> primus_turbo_attention();

}  // namespace moebius
