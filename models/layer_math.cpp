#include "models/layer_math.h"

#include <algorithm>

namespace moebius {
namespace {

// Shape in doubles: products of three 32-bit sizes do not fit in 64-bit integers, and 2^53 is exact enough
// for any of them.
struct Sizes {
  double m, n, k, groups, heads, kv_heads, head_dim, v_dim, kv;

  explicit Sizes(const Shape& s)
      : m(static_cast<double>(s.m)),
        n(static_cast<double>(s.n)),
        k(static_cast<double>(s.k)),
        groups(s.groups),
        heads(s.heads),
        kv_heads(s.kv_heads),
        head_dim(s.head_dim),
        v_dim(s.v_dim),
        kv(static_cast<double>(s.kv)) {}
};

constexpr double kWordBytes = 4;        // FP32, token ids, labels
constexpr double kAccumulateBytes = 8;  // FP32, read and written
constexpr double kMaskBytes = 1;        // of dropout

constexpr bool is_quantised(DType dtype) {
  return dtype == DType::kFp8 || dtype == DType::kInt8 || dtype == DType::kFp4 || dtype == DType::kInt4;
}

// What is computed from quantised operands comes out in BF16; other types keep theirs.
double result_bytes(DType dtype) {
  return element_bytes(is_quantised(dtype) ? DType::kBf16 : dtype);
}

// The quantised copy that a fused op writes beside its BF16 output.
double fused_copy_bytes(DType dtype) {
  return is_quantised(dtype) ? element_bytes(dtype) : 0;
}

double quantised_bytes(DType dtype) {
  return element_bytes(is_quantised(dtype) ? dtype : DType::kFp8);
}

// Keys and values that the queries of one sequence see: the first query's window begins `window - 1` before
// it.
double seen_keys(const Shape& shape, const Sizes& x) {
  if (shape.window <= 0) return x.kv;
  return std::min(x.kv, x.m / x.groups + shape.window - 1);
}

// q, k, v, o and log-sum-exp of an attention op, in bytes.
struct AttentionBytes {
  double queries, keys_values, out, lse;
};

AttentionBytes attention_bytes(const Shape& shape, const Sizes& x, DType dtype, DType stored) {
  const double keys = x.groups * seen_keys(shape, x);
  return {.queries = x.m * x.heads * x.head_dim * element_bytes(dtype),
          .keys_values = keys * x.kv_heads * (x.head_dim + x.v_dim) * element_bytes(stored),
          .out = x.m * x.heads * x.v_dim * result_bytes(dtype),
          .lse = x.m * x.heads * kWordBytes};
}

// Of queries and keys, masked ones too.
double all_pairs(const Sizes& x) {
  return x.m * x.kv;
}

// What kernels of their own (k > 0) move of the scores. Forward: product out, softmax in and out, product in;
// backward: product out, softmax two in and one out, three products in. Dropout (k = 2): in, mask, out.
double score_bytes(const Shape& shape, const Sizes& x, double element, bool back) {
  if (shape.k == 0) return 0;
  const double dropout = shape.k == 2 ? 2 * element + kMaskBytes : 0;
  return all_pairs(x) * x.heads * ((back ? 7 : 4) * element + dropout);
}

// Of chosen keys a query sees so many: as many as of a window.
Shape of_seen_keys(const Shape& shape) {
  Shape seen = shape;
  if (shape.k > 0) seen.window = static_cast<std::int32_t>(shape.k);
  return seen;
}

}  // namespace

bool is_chunked(const Shape& shape) {
  return shape.m > std::int64_t{kMostRecurrentRows} * std::max(1, shape.groups);
}

double attention_pairs(const Shape& shape) {
  const Sizes x(shape);
  const double queries = x.m / x.groups;
  // Position p sees p + 1 keys: the sum over p = kv - s .. kv - 1.
  double pairs = queries * x.kv - queries * (queries - 1) / 2;
  if (shape.window > 0) {
    // Positions p >= w lose p + 1 - w keys: an arithmetic series over the queries that stand there.
    const double window = shape.window;
    const double last = x.kv - window;                                // keys that the last position loses
    const double first = std::max(1.0, x.kv - queries + 1 - window);  // and the first that loses any
    if (last >= first) pairs -= (last - first + 1) * (first + last) / 2;
  }
  return x.groups * pairs;
}

Flops op_flops(OpKind kind, const Shape& shape) {
  const Sizes x(shape);
  const double elements = x.m * x.n;
  switch (kind) {
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
      return {2 * elements * x.k};
    // S = q k', o = P v: two products over the pairs.
    case OpKind::kAttention:
      if (shape.k > 0) return {2 * all_pairs(x) * x.heads * (x.head_dim + x.v_dim)};
      return {2 * attention_pairs(shape) * x.heads * (x.head_dim + x.v_dim)};
    // Five products over the pairs: S = q k' again (head_dim), dP = do v' (v_dim), dv = P' do (v_dim), dq =
    // dS k (head_dim), dk = dS' q (head_dim). With head_dim == v_dim that is 2.5 times the forward pass.
    case OpKind::kAttentionGrad:
      // the probabilities are there: four products over all pairs
      if (shape.k > 0) return {4 * all_pairs(x) * x.heads * (x.head_dim + x.v_dim)};
      return {2 * attention_pairs(shape) * x.heads * (3 * x.head_dim + 2 * x.v_dim)};

    case OpKind::kEmbeddingGrad:
      return {x.m * x.k};  // one addition
    case OpKind::kNorm:    // square, add, times 1/rms, times w; silu(z) and its product
      return {(shape.k == kOfSharedRows ? 2 : shape.k == 1 ? 9 : 4) * elements};
    // square, add; xhat = x/rms; g = dy*w; sum of g*xhat (2); (g - xhat*mean)/rms (3); dw += dy*xhat (2)
    case OpKind::kNormGrad:
      return {(shape.k == kOfSharedRows ? 7 : 11) * elements};
    case OpKind::kRowMeans:
      return {(shape.k == 1 ? 3 : 2) * elements};
    // (a, b) -> (a cos - b sin, a sin + b cos): six operations for two elements
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
      return {3 * x.m * x.heads * x.head_dim};
    // gated: silu = l / (1 + exp(-l)) (4), times right, times w; plain: gelu by tanh (9), times w
    case OpKind::kActivation:
      if (shape.k == 3) return {5 * elements};  // sigmoid (4) and the product
      if (shape.k == kGateOfRows) return {elements + 4 * x.m};
      return {(shape.k == 2 ? 6 : 10) * elements};
    // gated: sigmoid (4), silu (1), dright (2), silu' = s*(1 + l*(1 - s)) (4), dleft (3), dw (3); plain:
    // about the same
    case OpKind::kActivationGrad:
      // dy * s, sum of dy * x (2); of a row its sigmoid (4) and that sum's slope s * (1 - s) (3)
      if (shape.k == kGateOfRows) return {3 * elements + 7 * x.m};
      return {(shape.k == 2 ? 17 : 16) * elements};
    // softmax: maximum, subtract, exp, add over all n; sigmoid: 4 over all n; then sum, divide, scale over
    // the k chosen
    case OpKind::kGate:
      return {4 * elements + 3 * x.m * x.k};
    // the scores again (4), and through softmax and normalisation (4) for all n
    case OpKind::kGateGrad:
      return {8 * elements + 4 * x.m * x.k};
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermute:
    case OpKind::kAdd:
      return {elements};  // one addition
    case OpKind::kMlaKeysGrad:
      return {x.m * x.heads * x.k};  // rope gradients summed over the heads
    // NOLINTNEXTLINE(bugprone-branch-clone): as many for reasons of their own
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
      return {4 * elements};  // magnitude, maximum, times 1/scale, round
    case OpKind::kCrossEntropyStats:
    case OpKind::kCrossEntropy:
      return {4 * elements};  // subtract, exp; maximum and add, or two scalings
    // as kAttention; the two maps by heads: products of nope or v_dim columns with the latent's
    case OpKind::kPagedAttention:
      return {2 * attention_pairs(of_seen_keys(shape)) * x.heads * (x.head_dim + x.v_dim)};
    case OpKind::kIndexScores:  // and of each score the larger of it and nothing, its weight and the sum
      return {attention_pairs(shape) * x.heads * (2 * x.head_dim + 3)};
    case OpKind::kTopKeys:
      return {2 * attention_pairs(shape)};  // two comparisons
    case OpKind::kAbsorbQueries:
      return {2 * x.m * x.heads * (x.head_dim - x.k) * x.n};
    case OpKind::kAbsorbedValues:
      return {2 * x.m * x.heads * x.n * x.v_dim};
    case OpKind::kConvolution:
      return {2 * elements * x.k + 4 * elements};
    case OpKind::kDeltaRule: {
      const double matrix = x.head_dim * x.v_dim;
      if (!is_chunked(shape)) return {x.m * x.heads * 7 * matrix};
      return {x.m * x.heads * (6 * matrix + 2 * kDeltaChunk * (3 * x.head_dim + 2 * x.v_dim))};
    }
    case OpKind::kGreedySample:
    case OpKind::kLargest:
      return {elements};  // one comparison
    // two moments (3 each), two bias corrections, square root, add epsilon, divide, decay (2), step (2)
    case OpKind::kAdam:
      return {15 * x.m};
    case OpKind::kSumSquares:
      return {2 * x.m};

    // NOLINTNEXTLINE(bugprone-branch-clone): as many for reasons of their own
    case OpKind::kInput:
    case OpKind::kEmbedding:
    case OpKind::kPermute:
    case OpKind::kUnpermuteGrad:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kMlaKeys:
    case OpKind::kCacheAppend:
    case OpKind::kLastRows:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
      return {0};  // bytes are moved, nothing is computed
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
      return {0};
  }
  return {0};
}

bool has_stored_operand(OpKind kind) {
  return kind == OpKind::kGemm || kind == OpKind::kGemmDgrad || kind == OpKind::kGroupedGemm ||
         kind == OpKind::kGroupedGemmDgrad || kind == OpKind::kAttention || kind == OpKind::kPagedAttention ||
         kind == OpKind::kIndexScores;
}

Bytes op_bytes(OpKind kind, const Shape& shape, DType dtype, std::optional<DType> stored, DType summed) {
  const Sizes x(shape);
  const double in = element_bytes(dtype);
  const double kept = element_bytes(stored.value_or(dtype));
  const double out = result_bytes(dtype);
  const double elements = x.m * x.n;
  switch (kind) {
    case OpKind::kInput:
      return {x.m * (1 + x.k) * kWordBytes};
    case OpKind::kEmbedding:
      return {x.m * kWordBytes + x.m * x.k * 2 * out};
    // distinct rows of dW are read and written once
    case OpKind::kEmbeddingGrad:
      return {x.m * kWordBytes + x.m * x.k * out + std::min(x.m, x.n) * x.k * kAccumulateBytes};
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
      return {x.m * x.k * in + x.n * x.k * kept + elements * out +
              (shape.heads >= kWithBias ? x.n * out : 0)};
    case OpKind::kGemmWgrad: {
      const double added_to = 2 * element_bytes(summed);
      return {(x.m * x.k + x.n * x.k) * in + elements * (x.groups > 0 ? out : added_to) +
              (shape.heads >= kWithBias ? x.m * added_to : 0)};
    }
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
      return {x.m * x.k * in + std::min(x.groups, x.m) * x.n * x.k * kept + elements * out};
    case OpKind::kGroupedGemmWgrad:
      return {(x.m + x.n) * x.k * in + std::min(x.groups, x.k) * elements * 2 * element_bytes(summed)};
    case OpKind::kNorm:
      return {elements * ((shape.k == 1 ? 3 : 2) * out + fused_copy_bytes(dtype)) + x.n * out +
              (shape.k == kOfSharedRows ? x.m * kWordBytes : 0)};
    case OpKind::kNormGrad:
      return {elements * 3 * out + x.n * (out + kAccumulateBytes) +
              (shape.k == kOfSharedRows ? 2 * x.m * kWordBytes : 0)};
    case OpKind::kRowMeans:  // of queries and of keys
      return {(elements + (shape.k == 1 ? elements + x.n : 0)) * out + 2 * x.m * kWordBytes};
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
      return {(shape.k == kInPlace ? x.m * x.heads * x.head_dim : elements) * 2 * out};
    case OpKind::kAttention: {
      const AttentionBytes b = attention_bytes(shape, x, dtype, stored.value_or(dtype));
      return {b.queries + b.keys_values + b.out + b.lse + score_bytes(shape, x, out, false)};
    }
    // do, q, k, v, o, lse in; dq, dk, dv out, in the results' type
    case OpKind::kAttentionGrad: {
      const AttentionBytes b = attention_bytes(shape, x, dtype, dtype);
      return {2 * b.out + b.lse + (b.queries + b.keys_values) * (1 + out / in) +
              score_bytes(shape, x, out, true)};
    }
    case OpKind::kActivation:
      if (shape.k == 3) return {elements * 3 * out};
      if (shape.k == kGateOfRows) return {(elements * 2 + x.m) * out};
      return {elements * ((x.k + 1) * out + fused_copy_bytes(dtype))};
    case OpKind::kActivationGrad:
      if (shape.k == kGateOfRows) return {(elements * 3 + x.m * 2) * out};
      return {elements * (1 + 2 * x.k) * out};
    case OpKind::kGate:
      return {elements * out + x.m * x.k * kWordBytes};
    case OpKind::kGateGrad:
      return {elements * 2 * out + x.m * x.k * kWordBytes};
    // copied as they are, in the precision in which they travelled
    case OpKind::kPermute:
    case OpKind::kUnpermuteGrad:
      return {elements * 2 * in};
    case OpKind::kUnpermute:  // a row of each copy in; out one of each of k tokens, or as many
      return {x.n * (x.m + (shape.k > 0 ? x.k : x.m)) * out};
    case OpKind::kSplit:
      if (shape.k == 1) return {elements * (element_bytes(DType::kBf16) + element_bytes(dtype))};
      return {elements * 2 * out};
    case OpKind::kPermuteGrad:
    case OpKind::kConcat:
      return {elements * 2 * out};
    case OpKind::kAdd:
      if (shape.k == 2) return {elements * (2 * out + kMaskBytes)};
      return {elements * (3 * out + (shape.k == 1 ? kMaskBytes : 0))};
    // kv and rope in, keys and values out (or the gradients the other way): nope is head_dim - k
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
      if (shape.kv_heads == kValuesStay) return {x.m * (x.heads * (2 * x.head_dim - x.k) + x.k) * out};
      return {x.m * (x.heads * (2 * (x.head_dim + x.v_dim) - x.k) + x.k) * out};
    case OpKind::kLargest:
      return {elements * out};
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
      return {elements * (element_bytes(DType::kBf16) + quantised_bytes(dtype))};
    case OpKind::kCrossEntropyStats:
      return {elements * out + x.m * (1 + 3) * kWordBytes};
    case OpKind::kCrossEntropy:
      return {elements * 2 * out + x.m * (1 + 3 * x.groups) * kWordBytes};
    // as computed in, as the cache keeps it out
    case OpKind::kCacheAppend:
      return {elements * (out + kept)};
    // the cache's rows are read once, whatever the queries see of them
    case OpKind::kPagedAttention: {
      // What is chosen lies apart: read once for each query, but never more than the cache holds.
      const double all = x.groups * seen_keys(shape, x);
      const double keys = shape.k > 0 ? std::min(all, attention_pairs(of_seen_keys(shape))) : all;
      return {x.m * x.heads * (x.head_dim * in + x.v_dim * out) + keys * x.n * kept + x.m * x.k * kWordBytes};
    }
    case OpKind::kIndexScores:
      return {x.m * x.heads * (x.head_dim * in + out) + x.groups * x.kv * x.head_dim * kept +
              attention_pairs(shape) * kWordBytes};
    case OpKind::kTopKeys:
      return {(attention_pairs(shape) + x.m * x.k) * kWordBytes};
    case OpKind::kAbsorbQueries:
      return {x.m * x.heads * (x.head_dim * in + (x.n + x.k) * out) +
              x.heads * (x.head_dim - x.k) * x.n * kept};
    case OpKind::kAbsorbedValues:
      return {x.m * x.heads * (x.n * in + x.v_dim * out) + x.heads * x.v_dim * x.n * kept};
    case OpKind::kConvolution:
      return {elements * 2 * out + x.n * x.k * kept + std::max(1.0, x.groups) * (x.k - 1) * x.n * 2 * out};
    case OpKind::kDeltaRule: {
      const double sequences = std::max(1.0, x.groups), matrices = x.heads * x.head_dim * x.v_dim;
      const double written = is_chunked(shape) ? sequences : x.m;
      return {x.m * (x.n + 2 * x.heads + x.heads * x.v_dim) * out +
              (sequences + written) * matrices * kWordBytes};
    }
    case OpKind::kLastRows:
      return {x.groups * x.n * 2 * out};
    case OpKind::kGreedySample:
      return {elements * out + x.m * 2 * kWordBytes};
    case OpKind::kNextToken:
      return {x.m * (2 * x.groups + 1) * kWordBytes};
    case OpKind::kPlaceExperts:  // as the weights are kept
      return {elements * 2 * kept};
    // gradient and master weight read and written, two moments read and written, weight written
    // (8-bit moments: the first one alone, the second in BF16; k = 1: the weight instead of a master);
    // gradients as they are summed, masters as they are kept; of 128 new weights v_dim in 8 bits
    case OpKind::kAdam: {
      const double moment = dtype == DType::kFp8 ? (in + element_bytes(DType::kBf16)) / 2 : in;
      const double gradient = 2 * element_bytes(summed);
      const double master =
          x.k == 1 ? element_bytes(DType::kBf16) : 2 * element_bytes(stored.value_or(DType::kFp32));
      const double half = element_bytes(DType::kBf16), rounded = x.v_dim / kShareOfUpdate;
      const double weight = half + rounded * (element_bytes(DType::kFp8) - half);
      return {x.m * (gradient + master + 4 * moment + weight)};
    }
    case OpKind::kSumSquares:
      return {x.m * in};
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
      return {0};
  }
  return {0};
}

}  // namespace moebius
