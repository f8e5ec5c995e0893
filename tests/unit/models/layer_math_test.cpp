#include "models/layer_math.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace moebius {
namespace {

// Pairs counted one by one: the query at position p sees the keys max(0, p - window + 1) .. p.
double counted_pairs(std::int64_t queries, std::int64_t keys, std::int64_t window) {
  double pairs = 0;
  for (std::int64_t p = keys - queries; p < keys; ++p) {
    pairs += static_cast<double>(window > 0 ? std::min(p + 1, window) : p + 1);
  }
  return pairs;
}

double bytes(OpKind kind, const Shape& shape, DType dtype = DType::kBf16) {
  return op_bytes(kind, shape, dtype).value;
}
double flops(OpKind kind, const Shape& shape) {
  return op_flops(kind, shape).value;
}

}  // namespace

TEST_CASE("attention pairs equal a count one by one, with and without a window") {
  for (const std::int64_t keys : {1, 7, 16}) {
    for (std::int64_t queries = 1; queries <= keys; ++queries) {
      for (const int window : {0, 1, 3, 7, 16, 20}) {
        const Shape shape{.m = 3 * queries, .groups = 3, .kv = keys, .window = window};
        INFO("keys " << keys << " queries " << queries << " window " << window);
        CHECK(attention_pairs(shape) == 3 * counted_pairs(queries, keys, window));
      }
    }
  }
}

TEST_CASE("attention with different key and value widths multiplies each by its own") {
  // One sequence of 4: 10 pairs; 2 heads: scores over 192, values over 128.
  const Shape mla{.m = 4, .groups = 1, .heads = 2, .kv_heads = 2, .head_dim = 192, .v_dim = 128, .kv = 4};
  CHECK(flops(OpKind::kAttention, mla) == 2 * 10 * 2 * (192 + 128));
  // Backward: scores again, dq and dk over 192; dP and dv over 128.
  CHECK(flops(OpKind::kAttentionGrad, mla) == 2 * 10 * 2 * (3 * 192 + 2 * 128));
}

TEST_CASE("attention backward is 2.5 times forward when keys and values are equally wide") {
  const Shape shape{.m = 512, .groups = 2, .heads = 8, .kv_heads = 2, .head_dim = 64, .v_dim = 64, .kv = 256};
  CHECK(flops(OpKind::kAttentionGrad, shape) == 2.5 * flops(OpKind::kAttention, shape));
}

TEST_CASE("decode attention reads every key and value once for each group of heads") {
  // 2 sequences, one query each, 100 keys, 8 query heads on 2 key heads of 64.
  const Shape decode{.m = 2, .groups = 2, .heads = 8, .kv_heads = 2, .head_dim = 64, .v_dim = 64, .kv = 100};
  CHECK(flops(OpKind::kAttention, decode) == 2.0 * 200 * 8 * 128);
  // q and o: 2 x 512 each; k and v: 200 x 128 each, all in 2 bytes; log-sum-exp: 2 x 8 in 4 bytes.
  CHECK(bytes(OpKind::kAttention, decode) == (2 * 512 * 2 + 200 * 128 * 2) * 2 + 16 * 4);
}

TEST_CASE("a window bounds the keys that attention reads") {
  const Shape shape{
      .m = 1, .groups = 1, .heads = 1, .kv_heads = 1, .head_dim = 1, .v_dim = 1, .kv = 1000, .window = 10};
  // One query: 10 keys and 10 values, q and o of one element, one log-sum-exp.
  CHECK(bytes(OpKind::kAttention, shape) == (1 + 1 + 20) * 2 + 4);
}

TEST_CASE("an FP8 GEMM reads operands with their scales and writes BF16") {
  const Shape shape{.m = 128, .n = 256, .k = 512};
  CHECK(flops(OpKind::kGemm, shape) == 2.0 * 128 * 256 * 512);
  CHECK(bytes(OpKind::kGemm, shape, DType::kFp8) == (128 + 256) * 512 * (1 + 4.0 / 128) + 128 * 256 * 2);
  CHECK(bytes(OpKind::kGemm, shape, DType::kBf16) == ((128 + 256) * 512 + 128 * 256) * 2);
}

TEST_CASE("a weight gradient is read and written in FP32") {
  const Shape shape{.m = 64, .n = 32, .k = 1000};
  CHECK(bytes(OpKind::kGemmWgrad, shape) == (64 + 32) * 1000 * 2 + 64 * 32 * 8);
  CHECK(flops(OpKind::kGemmWgrad, shape) == 2.0 * 64 * 32 * 1000);
}

TEST_CASE("a grouped GEMM costs the FLOPs of its rows and the weights of the experts that can have rows") {
  const Shape few{.m = 3, .n = 16, .k = 8, .groups = 4};  // three rows reach at most three of four experts
  CHECK(flops(OpKind::kGroupedGemm, few) == 2.0 * 3 * 16 * 8);
  CHECK(bytes(OpKind::kGroupedGemm, few) == (3 * 8 + 3 * 16 * 8 + 3 * 16) * 2);
  const Shape wgrad{.m = 16, .n = 8, .k = 100, .groups = 4};
  CHECK(bytes(OpKind::kGroupedGemmWgrad, wgrad) == (16 + 8) * 100 * 2 + 4 * 16 * 8 * 8);
}

TEST_CASE("forward, data gradient and weight gradient of one matrix take the same FLOPs") {
  const double tokens = 100, out = 24, in = 40;
  CHECK(flops(OpKind::kGemm, {.m = 100, .n = 24, .k = 40}) == 2 * tokens * out * in);
  CHECK(flops(OpKind::kGemmDgrad, {.m = 100, .n = 40, .k = 24}) == 2 * tokens * out * in);
  CHECK(flops(OpKind::kGemmWgrad, {.m = 24, .n = 40, .k = 100}) == 2 * tokens * out * in);
}

TEST_CASE("quantising reads BF16 and writes bytes with a scale for 128 elements") {
  const Shape shape{.m = 10, .n = 256};
  const double expected = 2560 * (2 + 1 + 4.0 / 128);
  CHECK(bytes(OpKind::kQuantise, shape, DType::kFp8) == expected);
  CHECK(bytes(OpKind::kQuantise, shape, DType::kBf16) == expected);
  CHECK(bytes(OpKind::kTransposeQuantise, shape, DType::kFp8) == expected);
}

TEST_CASE("a fused norm writes the quantised copy beside the BF16 one") {
  const Shape shape{.m = 10, .n = 256};
  const double plain = bytes(OpKind::kNorm, shape, DType::kBf16);
  CHECK(plain == 2560 * 4 + 256 * 2);
  CHECK(bytes(OpKind::kNorm, shape, DType::kFp8) == plain + 2560 * (1 + 4.0 / 128));
}

TEST_CASE("copies of tokens are read, and a row of each token or of each copy is written") {
  CHECK(op_bytes(OpKind::kUnpermute, {.m = 64, .n = 256}, DType::kBf16).value == 2.0 * 128 * 256);
  CHECK(op_bytes(OpKind::kUnpermute, {.m = 64, .n = 256, .k = 8}, DType::kBf16).value == 2.0 * 72 * 256);
  CHECK(op_bytes(OpKind::kUnpermute, {.m = 4, .n = 256, .k = 8}, DType::kBf16).value == 2.0 * 12 * 256);
}

TEST_CASE("a gated activation reads two columns for each one that it writes") {
  CHECK(bytes(OpKind::kActivation, {.m = 5, .n = 64, .k = 2}) == 5 * 64 * 3 * 2);
  CHECK(bytes(OpKind::kActivation, {.m = 5, .n = 64, .k = 1}) == 5 * 64 * 2 * 2);
  // dy and both inputs in, both gradients out
  CHECK(bytes(OpKind::kActivationGrad, {.m = 5, .n = 64, .k = 2}) == 5 * 64 * 5 * 2);
}

TEST_CASE("Adam with FP32 moments moves 34 bytes a parameter, with BF16 moments 26") {
  // gradient 4 + 4 (read, cleared), master 4 + 4, moments 2 x (e + e), weight 2
  CHECK(bytes(OpKind::kAdam, {.m = 1000}, DType::kFp32) == 34000);
  CHECK(bytes(OpKind::kAdam, {.m = 1000}, DType::kBf16) == 26000);
  // Half of the weights in 8 bits, with a scale of 4 bytes for 128: 0.96875 bytes less each.
  CHECK(bytes(OpKind::kAdam, {.m = 1000, .v_dim = 64}, DType::kFp32) == 34000 - 0.96875 * 500);
}

TEST_CASE("MLA keys: the latent's columns and the rotary key in, keys and values of every head out") {
  // 2 heads, nope 3, rotary 1, value 2: in 2*(3+2) + 1 = 11, out 2*(3+1) + 2*2 = 12 columns of 7 rows.
  const Shape shape{.m = 7, .k = 1, .heads = 2, .head_dim = 4, .v_dim = 2};
  CHECK(bytes(OpKind::kMlaKeys, shape) == 7 * (11 + 12) * 2);
  CHECK(bytes(OpKind::kMlaKeysGrad, shape) == 7 * (11 + 12) * 2);
}

TEST_CASE("MLA keys whose values stay where they are: the keys' part in, keys out") {
  // 2 heads, nope 3, rotary 1: in 2*3 + 1 = 7, out 2*(3+1) = 8 columns of 7 rows, whatever the values have.
  const Shape shape{.m = 7, .k = 1, .heads = 2, .kv_heads = kValuesStay, .head_dim = 4, .v_dim = 2};
  CHECK(bytes(OpKind::kMlaKeys, shape) == 7 * (7 + 8) * 2);
}

TEST_CASE("what rotates in place reads and writes the columns that it rotates") {
  const Shape whole{.m = 7, .n = 2 * 192, .groups = 1, .heads = 2, .head_dim = 64};
  Shape in_place = whole;
  in_place.k = kInPlace;
  CHECK(bytes(OpKind::kRotary, whole) == 7 * 2 * 192 * 2 * 2);
  CHECK(bytes(OpKind::kRotary, in_place) == 7 * 2 * 64 * 2 * 2);
  CHECK(flops(OpKind::kRotary, in_place) == flops(OpKind::kRotary, whole));
}

TEST_CASE("the delta rule by rows and in chunks") {
  // 3 heads of 4 x 5, two sequences; qkv of 20 columns, 2 x 3 gates, 15 results, all of 2 bytes; states
  // of 60.
  Shape shape{.m = 2, .n = 20, .groups = 2, .heads = 3, .kv_heads = 1, .head_dim = 4, .v_dim = 5};
  CHECK_FALSE(is_chunked(shape));
  CHECK(flops(OpKind::kDeltaRule, shape) == 2 * 3 * 7 * 20);
  CHECK(bytes(OpKind::kDeltaRule, shape) == 2 * 41 * 2 + (2 + 2) * 60 * 4);
  shape.m = 4;  // a guess beside each token: a state behind each
  CHECK(bytes(OpKind::kDeltaRule, shape) == 4 * 41 * 2 + (2 + 4) * 60 * 4);
  shape.m = 200;
  CHECK(is_chunked(shape));
  CHECK(flops(OpKind::kDeltaRule, shape) == 200 * 3 * (6 * 20 + 2 * 64 * (3 * 4 + 2 * 5)));
  CHECK(bytes(OpKind::kDeltaRule, shape) == 200 * 41 * 2 + (2 + 2) * 60 * 4);
}

TEST_CASE("a convolution reads rows, its weights and the rows before each sequence") {
  const Shape shape{.m = 10, .n = 6, .k = 4, .groups = 2};
  CHECK(flops(OpKind::kConvolution, shape) == 10 * 6 * (2 * 4 + 4));
  CHECK(bytes(OpKind::kConvolution, shape) == (10 * 6 * 2 + 6 * 4 + 2 * 3 * 6 * 2) * 2);
}

TEST_CASE("norms and activations with a gate read it too") {
  CHECK(bytes(OpKind::kNorm, {.m = 4, .n = 8, .k = 1}) == bytes(OpKind::kNorm, {.m = 4, .n = 8}) + 4 * 8 * 2);
  CHECK(bytes(OpKind::kActivation, {.m = 4, .n = 8, .k = 3}) == 3 * 4 * 8 * 2);
}

TEST_CASE("norms of rows that ranks share: what each reads of a row, and a mean of it and back") {
  const Shape rows{.m = 4, .n = 8}, shared{.m = 4, .n = 8, .k = kOfSharedRows};
  CHECK(bytes(OpKind::kRowMeans, rows) == 4 * 8 * 2 + 4 * 2 * 4);
  CHECK(bytes(OpKind::kRowMeans, {.m = 4, .n = 8, .k = 1}) == (2 * 4 * 8 + 8) * 2 + 4 * 2 * 4);
  CHECK(bytes(OpKind::kNorm, shared) == bytes(OpKind::kNorm, rows) + 4 * 4);
  CHECK(bytes(OpKind::kNormGrad, shared) == bytes(OpKind::kNormGrad, rows) + 2 * 4 * 4);
  CHECK(flops(OpKind::kRowMeans, rows) + flops(OpKind::kNorm, shared) == flops(OpKind::kNorm, rows));
}

TEST_CASE("an activation by one gate a row reads rows and gates; back, gradients and rows") {
  const Shape rows{.m = 4, .n = 8, .k = kGateOfRows};
  CHECK(bytes(OpKind::kActivation, rows) == (2 * 4 * 8 + 4) * 2);  // x and its gates in, y out
  CHECK(flops(OpKind::kActivation, rows) == 4 * 8 + 4 * 4);        // a product an element, a sigmoid a row
  CHECK(bytes(OpKind::kActivationGrad, rows) == (3 * 4 * 8 + 2 * 4) * 2);  // dy, x, z in, dx, dz out
  CHECK(flops(OpKind::kActivationGrad, rows) == 3 * 4 * 8 + 7 * 4);
}

TEST_CASE("a bias costs its vector, and its gradient a sum that is read and written") {
  const Shape plain{.m = 4, .n = 8, .k = 3}, biased{.m = 4, .n = 8, .k = 3, .heads = kWithBias};
  CHECK(bytes(OpKind::kGemm, biased) == bytes(OpKind::kGemm, plain) + 8 * 2);
  CHECK(bytes(OpKind::kGemmWgrad, biased) == bytes(OpKind::kGemmWgrad, plain) + 4 * 2 * 4);
  CHECK(flops(OpKind::kGemm, biased) == flops(OpKind::kGemm, plain));
}

TEST_CASE("communication costs no FLOPs and no bytes of its own") {
  for (int i = 0; i < kNumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const Shape shape{
        .m = 4, .n = 4, .k = 2, .groups = 1, .heads = 1, .kv_heads = 1, .head_dim = 4, .v_dim = 4, .kv = 4};
    INFO(to_string(kind));
    if (is_communication(kind)) {
      CHECK(flops(kind, shape) == 0);
      CHECK(bytes(kind, shape) == 0);
    } else {
      CHECK(bytes(kind, shape) > 0);
    }
  }
}

TEST_CASE("work grows with the rows") {
  for (int i = 0; i < kNumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (is_communication(kind)) continue;
    const bool rows_in_k = kind == OpKind::kGemmWgrad || kind == OpKind::kGroupedGemmWgrad;
    Shape shape{.m = 64,
                .n = 32,
                .k = 32,
                .groups = 1,
                .heads = 2,
                .kv_heads = 2,
                .head_dim = 48,
                .v_dim = 48,
                .kv = 128};
    Shape twice = shape;
    (rows_in_k ? twice.k : twice.m) *= 2;
    if (kind == OpKind::kLastRows) twice.groups *= 2;  // reads one row of each sequence
    INFO(to_string(kind));
    CHECK(bytes(kind, twice) > bytes(kind, shape));
    CHECK(flops(kind, twice) >= flops(kind, shape));
  }
}

}  // namespace moebius
