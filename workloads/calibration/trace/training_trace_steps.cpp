// The kernels of a layer in the order of the trace. Shapes that no grid tells follow from the model (hidden
// 7168, 128 heads of 128 + 64 and 128, latents of 1536 and 512, experts of 2048, 256 of them) and from the
// order of the operands; arithmetic rates and grids agree with them.
#include "workloads/calibration/trace/training_trace.h"

namespace moebius {
namespace {

using K = OpKind;

constexpr DType kB = DType::kBf16, kF = DType::kFp8;
constexpr TraceRows kAll = TraceRows::kTokens, kCopies = TraceRows::kCopies;

constexpr std::string_view kNorm = "layer_norm::ln_fwd", kNormGrad = "layer_norm::ln_bwd_kernel",
                           kFinalize = "layer_norm::ln_bwd_finalize",
                           kCast = "per_token_cast_to_fp8_with_channels",
                           kScales = "dpsk::grouped_gemm::utils::transpose",
                           kGemm = "grouped_gemm::fp8_ptp128c",
                           kExperts = "grouped_gemm::m_grouped_fp8_ptp128c",
                           kGradient = "grouped_gemm::fp8_dptp128c_acc", kRouter = "sm90_xmma_gemm",
                           kTurn = "batched_transpose", kChannel = "per_channel_cast_and_transpose",
                           kWide = "vectorized_elementwise", kPlain = "elementwise_kernel",
                           kRotary = "rotary_kernel", kCopy = "_copy_tensor",
                           kUnrolled = "unrolled_elementwise";
constexpr std::string_view kBooks = "bookkeeping";

constexpr TraceStep op(std::string_view kernel, OpKind kind, DType dtype, std::int64_t n, std::int64_t k = 0,
                       TraceRows rows = kAll) {
  return {kernel, TraceRole::kOp, kind, dtype, n, k, rows};
}
constexpr TraceStep more(std::string_view kernel, OpKind kind, DType dtype, std::int64_t n,
                         TraceRows rows = kAll, int count = 1) {
  return {kernel, TraceRole::kMore, kind, dtype, n, 0, rows, count};
}
constexpr TraceStep recomputed(std::string_view kernel, OpKind kind, DType dtype, std::int64_t n,
                               TraceRows rows) {
  return {kernel, TraceRole::kRecomputed, kind, dtype, n, 0, rows};
}
// FP8 or 12 bits back to BF16, and the way there: the bytes of a cast, or nearly.
constexpr TraceStep cast_back(std::string_view kernel, std::int64_t n, TraceRows rows = kAll) {
  return {kernel, TraceRole::kSameBytes, K::kQuantise, kF, n, 0, rows};
}
// FP8 weights transposed for the other product: the bytes of FP8 rows that are copied.
constexpr TraceStep turned(std::int64_t elements) {
  return {kTurn, TraceRole::kSameBytes, K::kUnpermuteGrad, kF, 7168, elements / 7168};
}
constexpr TraceStep no_op(std::string_view kernel, std::string_view what, int count = 1) {
  return {kernel, TraceRole::kNoOp, K::kAdd, kB, 0, 0, kAll, count, what};
}

constexpr TraceStep kAttentionForward[] = {
    op(kNorm, K::kNorm, kB, 7168),
    op(kCast, K::kQuantise, kF, 7168),
    more(kScales, K::kQuantise, kF, 7168),
    op(kGemm, K::kGemm, kF, 1536, 7168),
    op(kCast, K::kQuantise, kF, 7168),
    more(kScales, K::kQuantise, kF, 7168),
    op(kGemm, K::kGemm, kF, 576, 7168),
    no_op("anon::elementwise_kernel_with_index", kBooks, 2),
    op(kNorm, K::kNorm, kB, 1536),
    op(kPlain, K::kSplit, kB, 576),
    op(kNorm, K::kNorm, kB, 512),
    more(kPlain, K::kSplit, kB, 576),
    op(kCast, K::kQuantise, kF, 1536),
    more(kScales, K::kQuantise, kF, 1536),
    op(kGemm, K::kGemm, kF, 24576, 1536),
    op(kCast, K::kQuantise, kF, 512),
    more(kScales, K::kQuantise, kF, 512),
    op(kGemm, K::kGemm, kF, 32768, 512),
    op(kRotary, K::kRotary, kB, 64),
    op(kCopy, K::kMlaKeys, kB, 32768, 64),
    more(kPlain, K::kMlaKeys, kB, 32768),
    op(kRotary, K::kRotary, kB, 24576),
    op("flash::compute_attn_ws", K::kAttention, kB, 0),
    cast_back("per_token_cast_to_fp8_with_fp8_special_fmt", 16384),
    op(kCast, K::kQuantise, kF, 16384),
    more(kScales, K::kQuantise, kF, 16384),
    op(kGemm, K::kGemm, kF, 7168, 16384),
    op(kWide, K::kAdd, kB, 7168),
    op(kNorm, K::kNorm, kB, 7168),
    op(kRouter, K::kGemm, kB, 256, 7168),
    op("", K::kGate, kB, 256, 8),  // scores, two passes of top-k, normalisation, the balancing loss
    more("", K::kGate, kB, 256, kAll, 36),
    op(kCast, K::kQuantise, kF, 7168),
};

constexpr TraceStep kMlpForward[] = {
    more(kScales, K::kQuantise, kF, 7168),
    op(kGemm, K::kGemm, kF, 4096, 7168),
    op("clean_and_count_expert", K::kPermute, kF, 7168, 8, kCopies),
    more("get_fused_mapping", K::kPermute, kF, 7168, kCopies),
    more("expand_to_fused", K::kPermute, kF, 7168, kCopies),
    turned(4 * 4096 * 7168),
    more(kPlain, K::kPermute, kF, 7168, kCopies),
    op(kExperts, K::kGroupedGemm, kF, 4096, 7168, kCopies),
    no_op(kWide, kBooks),
    op("swiglu_forward", K::kActivation, kF, 2048, 2, kCopies),
    turned(4 * 7168 * 2048),
    more(kPlain, K::kActivation, kF, 2048, kCopies),
    op(kExperts, K::kGroupedGemm, kF, 7168, 2048, kCopies),
    op("reduce_fused", K::kUnpermute, kB, 7168, 0, kCopies),
    op("swiglu_forward", K::kActivation, kF, 2048, 2),
    more(kScales, K::kActivation, kF, 2048),
    op(kGemm, K::kGemm, kF, 7168, 2048),
    op(kCast, K::kQuantise, kF, 4096, 0, kCopies),  // kept for the reverse pass
    op(kCast, K::kQuantise, kF, 4096),
};

constexpr TraceStep kMlpBackward[] = {
    cast_back("cast_back", 4096),
    turned(7168 * 2048),
    no_op(kScales, kBooks),  // of the cast before dispatch, on the communication stream
    op(kGemm, K::kGemmDgrad, kF, 2048, 7168),
    op(kChannel, K::kTransposeQuantise, kF, 7168),
    recomputed("swiglu_and_per_channel_cast", K::kTransposeQuantise, kF, 2048, kAll),
    op("swiglu_backward", K::kActivationGrad, kB, 2048, 2),
    cast_back("cast_back", 4096, kCopies),
    op("expand_to_fused", K::kUnpermuteGrad, kF, 7168, 0, kCopies),
    more(kPlain, K::kUnpermuteGrad, kF, 7168, kCopies),
    op(kExperts, K::kGroupedGemmDgrad, kF, 2048, 7168, kCopies),
    recomputed("swiglu_forward_backward", K::kActivationGrad, kB, 2048, kCopies),
    more("swiglu_weight_backward", K::kActivationGrad, kB, 2048, kCopies),
    op(kChannel, K::kTransposeQuantise, kF, 2048, 0, kCopies),
    no_op(kWide, kBooks),
    op(kNorm, K::kNorm, kB, 7168),
    op(kCast, K::kQuantise, kF, 7168),
    op(kCast, K::kQuantise, kF, 4096, 0, kCopies),
    more(kPlain, K::kQuantise, kF, 4096, kCopies),
    op(kExperts, K::kGroupedGemmDgrad, kF, 7168, 4096, kCopies),
    op("reduce_fused", K::kPermuteGrad, kB, 7168, 8, kCopies),
    op(kChannel, K::kTransposeQuantise, kF, 4096, 0, kCopies),
    cast_back("cast_back", 7168),
    turned(4096 * 7168),
    op(kCast, K::kQuantise, kF, 4096),
    more(kScales, K::kQuantise, kF, 4096),
    op(kGemm, K::kGemmDgrad, kF, 7168, 4096),
    op(kChannel, K::kTransposeQuantise, kF, 4096),
    op(kChannel, K::kTransposeQuantise, kF, 7168),
};

constexpr TraceStep kMlpWeights[] = {
    op(kGradient, K::kGemmWgrad, kF, 7168, 2048),
    op(kChannel, K::kTransposeQuantise, kF, 7168, 0, kCopies),
    op(kGradient, K::kGroupedGemmWgrad, kF, 7168, 2048, kCopies),  // one expert each, on two streams
    more(kGradient, K::kGroupedGemmWgrad, kF, 7168, kCopies, 3),
    op(kChannel, K::kTransposeQuantise, kF, 7168, 0, kCopies),
    op(kGradient, K::kGroupedGemmWgrad, kF, 4096, 7168, kCopies),
    more(kGradient, K::kGroupedGemmWgrad, kF, 4096, kCopies, 3),
    op(kGradient, K::kGemmWgrad, kF, 4096, 7168),
};

constexpr TraceStep kAttentionBackward[] = {
    op("", K::kGateGrad, kB, 256, 8),
    more("", K::kGateGrad, kB, 256, kAll, 25),
    op(kRouter, K::kGemmDgrad, kB, 7168, 256),
    op(kRouter, K::kGemmWgrad, kB, 256, 7168),
    op(kWide, K::kAdd, kB, 7168),
    op(kNormGrad, K::kNormGrad, kB, 7168),
    more(kFinalize, K::kNormGrad, kB, 7168),
    more(kUnrolled, K::kNormGrad, kB, 7168),
    op(kWide, K::kAdd, kB, 7168),
    cast_back("per_token_cast_back_special_fmt", 16384),
    op(kCast, K::kQuantise, kF, 7168),
    turned(7168 * 16384),
    more(kScales, K::kQuantise, kF, 7168),
    op(kGemm, K::kGemmDgrad, kF, 16384, 7168),
    op(kChannel, K::kTransposeQuantise, kF, 16384),
    op(kChannel, K::kTransposeQuantise, kF, 7168),
    op(kNorm, K::kNorm, kB, 1536),
    op(kPlain, K::kSplit, kB, 576),
    op(kNorm, K::kNorm, kB, 512),
    op(kCast, K::kQuantise, kF, 1536),
    more(kScales, K::kQuantise, kF, 1536),
    op(kGemm, K::kGemm, kF, 24576, 1536),
    op(kCast, K::kQuantise, kF, 512),
    more(kScales, K::kQuantise, kF, 512),
    op(kGemm, K::kGemm, kF, 32768, 512),
    op(kRotary, K::kRotary, kB, 64),
    op(kCopy, K::kMlaKeys, kB, 32768, 64),
    more(kPlain, K::kMlaKeys, kB, 32768),
    op(kRotary, K::kRotary, kB, 24576),
    op("FlashAttnBwdPreprocess", K::kAttentionGrad, kB, 0),
    more("FlashAttnBwd", K::kAttentionGrad, kB, 0, kAll, 2),
    op(kRotary, K::kRotaryGrad, kB, 24576),
    turned(24576 * 1536),
    op(kCast, K::kQuantise, kF, 24576),
    more(kScales, K::kQuantise, kF, 24576),
    op(kGemm, K::kGemmDgrad, kF, 1536, 24576),
    op("reduce_kernel", K::kMlaKeysGrad, kB, 32768, 64),
    op(kRotary, K::kRotaryGrad, kB, 64),
    more(kCopy, K::kMlaKeysGrad, kB, 32768, kAll, 2),
    turned(32768 * 512),
    op(kCast, K::kQuantise, kF, 32768),
    more(kScales, K::kQuantise, kF, 32768),
    op(kGemm, K::kGemmDgrad, kF, 512, 32768),
    op(kChannel, K::kTransposeQuantise, kF, 32768),
    op(kChannel, K::kTransposeQuantise, kF, 512),
    op(kChannel, K::kTransposeQuantise, kF, 24576),
    op(kChannel, K::kTransposeQuantise, kF, 1536),
    op(kNormGrad, K::kNormGrad, kB, 512),
    more(kFinalize, K::kNormGrad, kB, 512),
    more(kUnrolled, K::kNormGrad, kB, 512),
    op(kNormGrad, K::kNormGrad, kB, 1536),
    more(kFinalize, K::kNormGrad, kB, 1536),
    more(kUnrolled, K::kNormGrad, kB, 1536),
    op(kWide, K::kConcat, kB, 576),
    more("", K::kConcat, kB, 576, kAll, 4),
    op(kNorm, K::kNorm, kB, 7168),
    op(kCast, K::kQuantise, kF, 576),
    turned(576 * 7168),
    more(kScales, K::kQuantise, kF, 576),
    op(kGemm, K::kGemmDgrad, kF, 7168, 576),
    op(kChannel, K::kTransposeQuantise, kF, 7168),
    op(kChannel, K::kTransposeQuantise, kF, 576),
    op(kCast, K::kQuantise, kF, 1536),
    turned(1536 * 7168),
    more(kScales, K::kQuantise, kF, 1536),
    op(kGemm, K::kGemmDgrad, kF, 7168, 1536),
    op(kChannel, K::kTransposeQuantise, kF, 7168),
    op(kChannel, K::kTransposeQuantise, kF, 1536),
    op(kWide, K::kAdd, kB, 7168),
    op(kNormGrad, K::kNormGrad, kB, 7168),
    more(kFinalize, K::kNormGrad, kB, 7168),
    more(kUnrolled, K::kNormGrad, kB, 7168),
};

constexpr TraceStep kAttentionWeights[] = {
    op(kGradient, K::kGemmWgrad, kF, 7168, 16384), op(kGradient, K::kGemmWgrad, kF, 32768, 512),
    op(kGradient, K::kGemmWgrad, kF, 24576, 1536), op(kGradient, K::kGemmWgrad, kF, 576, 7168),
    op(kGradient, K::kGemmWgrad, kF, 1536, 7168),
};

constexpr TracePhase kPhases[] = {
    {"attn(F)", kAttentionForward}, {"mlp(F)", kMlpForward},         {"mlp(B)", kMlpBackward},
    {"mlp(W)", kMlpWeights},        {"attn(B)", kAttentionBackward}, {"attn(W)", kAttentionWeights},
};

}  // namespace

std::span<const TracePhase> trace_phases() {
  return kPhases;
}

}  // namespace moebius
