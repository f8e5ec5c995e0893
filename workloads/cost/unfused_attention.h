// Attention whose products, softmax and dropout are kernels of their own (kAttention, kAttentionGrad with k >
// 0), as it was before fused kernels: the scores go through memory between them. Over all keys, masked ones
// too. kAttention has further outputs, kAttentionGrad takes them as further inputs: the probabilities
// [m,heads*kv] (of packed sequences as many as their own pairs) and, k = 2, what dropout leaves of them and
// its mask (8 bits).
#pragma once

#include "workloads/cost/cost_source.h"

namespace moebius {

bool is_unfused_attention(const CostQuery& query);

// The sum of its kernels, each as `source` knows it: a product is a GEMM for each head of each sequence,
// which is a kGroupedGemm; softmax and dropout stream what they read and write.
Cost unfused_attention_cost(const CostSource& source, const CostQuery& query);

}  // namespace moebius
