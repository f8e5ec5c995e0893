#include "workloads/cost/roofline.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/cost/architecture.h"
#include "workloads/cost/serving_ops.h"

namespace moebius {
namespace {

DType next_wider(DType dtype) {
  switch (dtype) {
    case DType::kFp4:
      return DType::kFp8;
    case DType::kInt4:
      return DType::kInt8;
    case DType::kFp8:
    case DType::kInt8:
      return DType::kBf16;
    case DType::kBf16:
      return DType::kFp16;
    case DType::kFp16:
      return DType::kTf32;
    case DType::kTf32:
    case DType::kInt32:
    case DType::kFp32:
      return DType::kFp32;
  }
  return DType::kFp32;
}

bool sums_over_rows(OpKind kind) {
  return kind == OpKind::kGroupedGemmWgrad;
}

bool has_uneven_sequences(const CostQuery& query) {
  return is_attention(query.kind) && !query.rows.empty();
}

std::int64_t queries_of_sequence(const Shape& shape) {
  return shape.m / std::max(1, shape.groups);
}

// One sequence of an attention op.
CostQuery sequence_of(const CostQuery& query, std::int32_t keys) {
  CostQuery one = query;
  one.rows = {};
  one.shape.groups = 1;
  one.shape.m = queries_of_sequence(query.shape);
  one.shape.kv = std::max<std::int64_t>(keys, one.shape.m);
  return one;
}

// Of attention with `rows`: the sum over its sequences.
template <typename Amount>
double sum_over_sequences(const CostQuery& query, Amount amount) {
  return std::accumulate(query.rows.begin(), query.rows.end(), 0.0, [&](double sum, std::int32_t keys) {
    return sum + amount(sequence_of(query, keys));
  });
}

double flops_of(const CostQuery& query) {
  if (has_uneven_sequences(query)) return sum_over_sequences(query, flops_of);
  return op_flops(query.kind, loaded_shape(query)).value;
}

// Of the products: kernels of attention may multiply in the format of the cache, where the chip is faster.
FlopRate peak_of(const Accelerator& accelerator, const CostQuery& query) {
  const FlopRate peak = accelerator.peak_of(executed_dtype(accelerator, query.dtype));
  if (!is_attention(query.kind)) return peak;
  const FlopRate stored = accelerator.peak_of(executed_dtype(accelerator, stored_dtype(query)));
  return peak.value < stored.value ? stored : peak;
}

double shared_value_bytes(const CostQuery& query) {
  const Shape& s = query.shape;
  if (query.kind != OpKind::kAttention || !is_absorbed_latent(s) || s.window > 0) return 0;
  return static_cast<double>(std::max(1, s.groups)) * static_cast<double>(s.kv) * s.v_dim *
         element_bytes(stored_dtype(query));
}

}  // namespace

bool is_absorbed_latent(const Shape& attention) {
  return attention.kv_heads == 1 && attention.v_dim > 256 && attention.head_dim > attention.v_dim;
}

DType executed_dtype(const Accelerator& accelerator, DType dtype) {
  while (accelerator.peak_of(dtype).value <= 0 && next_wider(dtype) != dtype) dtype = next_wider(dtype);
  // A catalog entry may state one wide peak only: FP32 work on a chip described by its BF16 peak runs at
  // that.
  for (const DType other : {DType::kTf32, DType::kBf16, DType::kFp16, DType::kFp8, DType::kInt8, DType::kFp4})
    if (accelerator.peak_of(dtype).value <= 0) dtype = other;
  if (accelerator.peak_of(dtype).value <= 0)
    throw input_error(
        fmt::format("accelerator {}: expected a peak of some number format (\"bf16\": \"100 TFLOP/s\"), "
                    "found none: its matrix "
                    "products have no time",
                    accelerator.id));
  return dtype;
}

DType product_dtype(const Accelerator& accelerator, const CostQuery& query) {
  const DType stored = stored_dtype(query);
  const bool latent = is_any_attention(query.kind) && is_absorbed_latent(query.shape);
  if (stored == query.dtype || !latent) return query.dtype;
  const Architecture* built = find_architecture(accelerator.architecture);
  if (built == nullptr || !built->asynchronous || built->scaling_lanes > 0) return query.dtype;
  const bool faster = accelerator.peak_of(executed_dtype(accelerator, query.dtype)).value <
                      accelerator.peak_of(executed_dtype(accelerator, stored)).value;
  return faster ? stored : query.dtype;
}

bool uses_tensor_cores(OpKind kind) {
  switch (kind) {
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
    case OpKind::kPagedAttention:
    case OpKind::kIndexScores:
    case OpKind::kAbsorbQueries:
    case OpKind::kAbsorbedValues:
    case OpKind::kDeltaRule:
      return true;
    case OpKind::kInput:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kNorm:
    case OpKind::kNormGrad:
    case OpKind::kRowMeans:
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kActivation:
    case OpKind::kActivationGrad:
    case OpKind::kGate:
    case OpKind::kGateGrad:
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
    case OpKind::kAdd:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
    case OpKind::kLargest:
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
    case OpKind::kCrossEntropyStats:
    case OpKind::kCrossEntropy:
    case OpKind::kAdam:
    case OpKind::kSumSquares:
    case OpKind::kCacheAppend:
    case OpKind::kConvolution:
    case OpKind::kTopKeys:
    case OpKind::kLastRows:
    case OpKind::kGreedySample:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
    case OpKind::kDispatch:
    case OpKind::kCombine:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      return false;
  }
  return false;
}

int cores_of_chip(const Accelerator& accelerator, OpKind kind) {
  const bool apart = accelerator.independent_engines && accelerator.general_cores > 0;
  return std::max(1, apart && !uses_tensor_cores(kind) ? accelerator.general_cores : accelerator.cores);
}

Shape loaded_shape(const CostQuery& query) {
  Shape shape = query.shape;
  if (query.rows.empty()) return shape;
  const auto rows = std::accumulate(query.rows.begin(), query.rows.end(), std::int64_t{0});
  if (is_attention(query.kind)) {
    const auto sequences = static_cast<std::int64_t>(query.rows.size());
    shape.m = queries_of_sequence(query.shape) * sequences;
    shape.kv = (rows + sequences / 2) / sequences;
    shape.groups = static_cast<std::int32_t>(sequences);
    return shape;
  }
  (sums_over_rows(query.kind) ? shape.k : shape.m) = rows;
  shape.groups = static_cast<std::int32_t>(query.rows.size());
  return shape;
}

double least_bytes(const CostQuery& asked) {
  const CostQuery query = priced_as(asked);
  if (has_uneven_sequences(query)) return sum_over_sequences(query, least_bytes);
  Shape shape = loaded_shape(query);
  if (!query.rows.empty())
    shape.groups = static_cast<std::int32_t>(
        std::count_if(query.rows.begin(), query.rows.end(), [](std::int32_t rows) { return rows > 0; }));
  return op_bytes(query.kind, shape, query.dtype, query.stored, query.summed).value -
         shared_value_bytes(query);
}

bool is_found_in_l2(const Accelerator& accelerator, const CostQuery& query) {
  constexpr double kOverfull =
      1.06;  // of so much more than fits, most is still found: kernels on RTX PRO 6000
  return query.hot && is_attention(query.kind) && least_bytes(query) <= kOverfull * accelerator.l2.value;
}

Roofline roofline(const Accelerator& accelerator, const CostQuery& asked) {
  const CostQuery query = priced_as(asked);
  const double share =
      std::min(1.0, static_cast<double>(std::max(1, query.cores)) / cores_of_chip(accelerator, query.kind));
  Roofline bound;
  // The vector kinds count a few operations an element and have no peak in the catalog; they are bound by
  // memory.
  if (uses_tensor_cores(query.kind))
    bound.arithmetic = flops_of(query) / (peak_of(accelerator, query).value * share);
  if (accelerator.memory_rate.value > 0 && !is_found_in_l2(accelerator, query))
    bound.memory = least_bytes(query) / accelerator.memory_rate.value;
  return bound;
}

}  // namespace moebius
