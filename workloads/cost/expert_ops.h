// The kernels of the routed experts of one rank, one after the other, as a layer runs them between the
// router's scores and the sum over a token's experts: the ops of workloads/training/layers/mlp.cpp without
// router and communication.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "workloads/cost/cost_source.h"

namespace moebius {

struct ExpertLayer {
  std::int64_t hidden = 0;
  std::int64_t width = 0;  // of one expert on this rank
  int experts = 0;         // of all ranks: scores of a token
  int active = 0;          // of a token
  bool gated = true;
  DType dtype = DType::kBf16;   // of the products
  std::optional<DType> stored;  // of the weights, where it is not `dtype`
};

// Scores to weights, quantisation of the tokens (8- and 4-bit products), permute, grouped GEMM up (and gate),
// activation with its quantised copy, grouped GEMM down, unpermute. `tokens`: rows that the rank sees before
// they are permuted; `rows`: of each of its experts, copies by expert. The queries look at `rows`.
std::vector<CostQuery> expert_kernels(const ExpertLayer& layer, std::int64_t tokens,
                                      std::span<const std::int32_t> rows, int cores);

bool is_expert_gemm(const CostQuery& query);

}  // namespace moebius
