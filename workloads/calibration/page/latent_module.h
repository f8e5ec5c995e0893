// A whole attention module of DeepSeek-V3, as the kernel database times it, put together from the ops that
// profiles know one by one: no row of it is built from, so that it tests what a sum of ops is worth.
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "hw/profile.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

struct LatentModule {
  std::int32_t heads = 128;  // of this rank
  std::int32_t sequences = 1;
  std::int64_t queries = 1;  // of each; one: decode over `keys`
  std::int64_t keys = 1;
  DType gemm = DType::kBf16;   // of the projections, which quantise their activations where it is not BF16
  DType cache = DType::kBf16;  // under BF16 arithmetic
};

// Its ops on `chip`, in order: projections to 1536 and 576, norms, projection to the heads, rotation; then
// the absorption and the attention over latent rows (decode), or keys and values of each head and the
// attention over those (prefill); the projection back to 7168. What a replay finds in L2 is hot.
std::vector<CostQuery> ops_of(const LatentModule& module, const Accelerator& chip);

// Markdown: of every chip of `profiles` that mla_module_*.csv.gz or wideep_mla.csv.gz in `from`/kernels have
// rows of, by stack and phase, how far the sum of the ops is from the module: rows, median, bias (median of
// the signed errors). Ops of a stack without tables are told by the profile's other ones. Empty when there
// are none.
std::string composition_table(const std::string& from, const std::vector<Profile>& profiles);

}  // namespace moebius
