// FLOPs and bytes of one op, as pure functions of its kind and shape. No allocation, no state: they are
// called in the innermost loops of the cost model. A multiply-add counts as two FLOPs.
#pragma once

#include <optional>

#include "hw/dtype.h"
#include "hw/units.h"
#include "models/op_kind.h"

namespace moebius {

// Query-key pairs of one head over all sequences of an attention op. Causal and exact: of `kv` keys per
// sequence the queries are the last s = m/groups positions, and the one at position p (from 0) sees the keys
// p-w+1 .. p, where w is shape.window, or all of 0 .. p when that is 0. With w = 0: groups * (s*kv -
// s*(s-1)/2).
double attention_pairs(const Shape& shape);

// Arithmetic of the op.
// - GEMM kinds: 2*m*n*k; a grouped one the same: m (k for weight gradients) counts the rows of all experts.
// - Attention: per pair and head 2*head_dim for the score and 2*v_dim for the value; softmax is not counted.
//   Backward: 2*(3*head_dim + 2*v_dim), the scores computed again. head_dim != v_dim is MLA.
// - Delta rule, per row and value head, of K key and V value columns: 7 K V row by row (decay; S'k, the outer
//   product and S'q, two each). In chunks of C rows 6 K V (w S, k' v and q S) and 2 C (3 K + 2 V) (k k', its
//   inverse times k and v, q k' and that times v).
// - All other compute kinds run at memory speed; they count one to twenty operations an element by the
// formula
//   in the .cpp, where a transcendental function is one operation.
// - Communication: zero.
Flops op_flops(OpKind kind, const Shape& shape);

// The gated delta rule over whole chunks of rows, by products of matrices (arXiv 2412.06464, section 3.3), or
// row by row where a sequence has few: a token that decodes, with guesses beside it.
inline constexpr int kDeltaChunk = 64, kMostRecurrentRows = 8;
bool is_chunked(const Shape& delta_rule);

// Bytes that must cross device memory when nothing is cached: each input read once, each output written once.
// - `dtype` is the precision of the operands. 8- and 4-bit operands carry their block scales (element_bytes:
// an
//   FP8 element is 1 + 4/128 bytes); what is computed from them is written in BF16. Other types keep theirs.
// - Weight gradients (GEMM, grouped, embedding, norm) accumulate: FP32, read and written. A bias is
//   added, or its gradient summed, on the product's way: the vector alone counts.
// - Experts' weights count for the groups that can have rows: min(groups, rows).
// - kNorm, kActivation with an 8- or 4-bit dtype: the quantised copy is written beside the BF16 one (fused).
// - kQuantise, kTransposeQuantise: BF16 in; out in `dtype` when that is an 8- or 4-bit type, else in FP8.
// - kAdam: `dtype` is that of the two moments, `summed` that of gradients, which are read and cleared,
// `stored`
//   that of master weights (empty: FP32); new weights are BF16, and of v_dim in 128 elements 8 bits.
// - kPermute and its like: a token received in several copies counts once a copy; how many there are, the
//   route knows. kUnpermute with a k writes k rows.
// - Token ids, labels, log-sum-exp and loss statistics take 4 bytes; weights of routed rows are left out.
// - kDeltaRule: the state, FP32, read once a sequence, and written once or, row by row, behind each row.
// - Communication: zero; Op::payload says what moves.
// - `stored`: the format of the operand that is kept, where it is not that of the arithmetic: the weights of
// kGemm,
//   kGemmDgrad and their grouped kinds (INT4 weights under BF16 activations), the keys and values of
//   kAttention, kPagedAttention and kIndexScores (an FP8 cache under BF16 queries). Empty: `dtype`. Other
//   kinds have no such operand.
inline constexpr int kShareOfUpdate = 128;  // that v_dim of kAdam counts in
Bytes op_bytes(OpKind kind, const Shape& shape, DType dtype, std::optional<DType> stored = {},
               DType summed = DType::kFp32);

// Whether a kind has an operand that may be stored in a format of its own.
bool has_stored_operand(OpKind kind);

}  // namespace moebius
