// The closed set of operations. A new kind needs a cost law, a host implementation, a CUDA implementation and
// a comparison case; every switch over OpKind is written without `default`, so that the compiler names the
// places.
#pragma once

#include <cstdint>
#include <string_view>

namespace moebius {

// Shapes (see Shape below): T = m tokens (rows). Weights are stored [n, k] (out, in), activations [rows,
// columns].
// "+=" adds to what the tensor holds; a tensor that has not been written holds zeros. Rows of routed operands
// are those that Op::route gives this member of the expert group; m is the largest over the members.
enum class OpKind : std::uint8_t {
  kInput,  // () -> tokens[m], then k shifted copies (labels; k >= 1): the next microbatch, ids below n; m =
           // groups sequences of m/groups tokens (groups 0 counts as 1); members of a tensor group get the
           // same tokens. Of a batch (Op::batch): generated[requests,.] -> tokens[m]: those of its rows, of
           // the prompt or generated
  kEmbedding,      // tokens[m], W[n,k] -> x[m,k]; rows of W outside this rank's shard give zeros
  kEmbeddingGrad,  // tokens[m], dx[m,k] -> dW[n,k] +=
  kGemm,           // x[m,k], W[n,k] (, b[n]) -> y[m,n]; b, added to each row: heads = kWithBias
  kGemmDgrad,    // dy[m,k], W[k,n] -> dx[m,n]        (m, n, k are those of this GEMM, not of the forward one)
  kGemmWgrad,    // dy[k,m], x[k,n] -> dW[m,n] += (, db[m] +=) (k = tokens; groups = 1: dW is written, not
                 // added to); db, the sums of dy's columns: heads = kWithBias
  kGroupedGemm,  // kGemm for `groups` experts: x[m,k], W[groups,n,k] -> y[m,n]; rows by expert as the route
                 // says
  kGroupedGemmDgrad,  // dy[m,k], W[groups,k,n] -> dx[m,n]
  kGroupedGemmWgrad,  // dy[k,m], x[k,n] -> dW[groups,m,n] +=; k = rows over all experts
  kNorm,  // RMSNorm: x[m,n], w[n] -> y[m,n] (, the same quantised, fused); tensors of heads: m = rows *
          // heads, flat. k = 1: x, w, z[m,n] -> y times silu(z); k = 2 (kOfSharedRows): x, w, means[m,.] ->
          // y: of rows whose columns ranks share, the mean of all squares of each in column kv_heads of means
  kNormGrad,  // dy[m,n], x[m,n], w[n] -> dx[m,n], dw[n] +=; k = 2: dy, x, w, means[m,.], projections[m,.] ->
              // the same, projections being means of dy*x*w of whole rows
  kRowMeans,  // x[m,.] x count -> means[m,count]: of each one's rows the mean of squares, times scale; k = 1:
              // (dy[m,.], x[m,.], w[.]) x count -> means of dy*x*w; n: columns of all x together
  kRotary,  // x[m,n] -> y[m,n]: rotates the last head_dim columns of each of `heads` heads (n/heads columns a
            // head); columns (i, i + head_dim/2) by position * frequency i (models/constants.h), position =
            // row in its sequence, as in kInput; of a batch: the position that the batch gives the row
  kRotaryGrad,  // dy[m,n] -> dx[m,n]
  kAttention,   // causal: q[m,heads*head_dim], k[kv*groups,kv_heads*head_dim], v[..,kv_heads*v_dim] ->
                // o[m,heads*v_dim], lse[m,heads]; scores times 1/sqrt(head_dim); query head h reads key head
                // h*kv_heads/heads; lse = log(sum exp(score)). Of a batch: its sequences one after the other,
                // each with its own queries and keys (first rows of q and o); kv is their mean. k = 1, 2:
                // workloads/cost/unfused_attention.h
  kAttentionGrad,  // do, q, k, v, o, lse -> dq, dk, dv; k = 1, 2: further inputs are the further outputs of
                   // kAttention
  kActivation,     // gated (k = 2): x[m,2n] (, w[m]) -> silu(left) * right * w [m,n]; plain (k = 1):
                // gelu(x[m,n]) * w; a second output is the same quantised, fused; w: the weight of a routed
                // row, 1 when there is no second input; k = 3: x[m,n], z[m,n] -> x * sigmoid(z); k = 4: the
                // same with one gate a row, z[m,1]
  kActivationGrad,  // dy[m,n], x[m,k*n] (, w[m]) -> dx[m,k*n] (, dw[m]); k = 4: dy[m,n], x[m,n], z[m,1] ->
                    // dx[m,n], dz[m,1]
  kGate,  // logits[m,n] -> weights[m,k]: scores of the k experts that the route gives, normalised to a sum of
          // one, times scale; groups = 0: softmax scores, 1: sigmoid scores
  kGateGrad,     // dweights[m,k], logits[m,n] -> dlogits[m,n]
  kPermute,      // received tokens[.,n], received weights[.,k] -> copies by expert [m,n], their weights [m];
                 // experts ascending, within each in the order of arrival
  kPermuteGrad,  // d(copies)[m,n], d(weights)[m] -> d(received)[.,n]: sum over a token's copies, d(received
                 // weights)[.,k]
  kUnpermute,    // rows by expert [m,n] -> the sum of its copies for each received token [.,n] (k)
  kUnpermuteGrad,  // d(token rows)[.,n] -> d(rows by expert)[m,n]
  kAdd,      // a[m,n], b[m,n] -> a + b; k = 1: + what dropout leaves of b, whose mask (8 bits) is a second
             // output; k = 2: dy[m,n], mask[m,n] -> what it leaves of dy; k = 3:
             // workloads/schedule/context_part.h
  kSplit,    // x[m,n] -> column blocks, one per output, in order (the outputs' columns add up to n); into an
             // output that is a flat shard of x, this rank's; k = 1: x is BF16, the output of the op's type;
             // also passes over m rows of n: workloads/training/layers/one_hot.cpp
  kConcat,   // column blocks -> x[m,n]
  kMlaKeys,  // kv[m,heads*(nope+v)], rope[m,r] -> k[m,heads*(nope+r)], v[m,heads*v]; nope = head_dim - r, r =
             // k, v = v_dim
  kMlaKeysGrad,  // dk, dv -> dkv, drope
  kLargest,      // x[m,n] -> [1]: its largest magnitude
  kQuantise,  // x[m,n] (, largest[1]) -> x in 8 bits with one scale per row and 128 columns (host: rounded,
              // kept in float), or as Tensor::scaling says (, the same as kTransposeQuantise makes it, in one
              // pass)
  kTransposeQuantise,  // the same with one scale per column and 128 rows, for weight gradients (stored
                       // transposed; logically still [m,n])
  kCrossEntropyStats,  // logits[m,n], labels[m] -> stats[m,3]: row maximum, sum of exp(x - maximum), label's
                       // logit (0: not here); the columns are vocabulary [i*n, (i+1)*n) of member i of the
                       // tensor group
  kCrossEntropy,  // logits[m,n], labels[m], stats[m*groups,3] of all shards, one after the other -> loss[1]
                  // +=, dlogits[m,n], both times scale
  kAdam,  // (gradient, weight, master, first, second moment) x count -> the same; m elements in all. Updates
          // the member's own flat shard of each tensor when the op names a group (see kReduceScatter), else
          // all; master and moments hold that shard only, as do a gradient and a weight that are sharded
          // (Tensor::shards). k = 1: there is no master, the weight is updated itself. Zeroes the whole
          // gradient. One input more, squares[1]: gradients count times min(1, scale / (root of squares +
          // 1e-6))
  kSumSquares,   // gradient x count -> squares[1] +=: of the member's own elements of each, as kAdam says,
                 // times scale; m in all Serving: rows are the tokens of a batch (Op::batch,
                 // workloads/schedule/batch.h), sequence by sequence
  kCacheAppend,  // column blocks [m,.] -> cache[.,n], in place: side by side in the row that each token has
                 // in it; other rows stay. n: their columns together. k = 1: the way back, cache -> column
                 // blocks: rows of all that the cache holds of each sequence, new ones too. heads = 1: a row
                 // for each sequence, in its row of the states (BatchSequence::state), instead of one for
                 // each token
  kPagedAttention,  // q[m,heads*head_dim], cache[.,>= n] (, chosen[m,k]) -> o[m,heads*v_dim]: causal, over
                    // all that the cache holds of the sequence, the batch's own tokens included, or what is
                    // chosen of it; scores times scale. The first n columns of a row are the keys of all
                    // kv_heads, then their values; or, n = kv_heads*head_dim, keys whose first v_dim columns
                    // are the values
  kIndexScores,  // q[m,heads*head_dim], cache[.,>= head_dim], w[m,heads] -> scores[m,n]: sum over heads of w
                 // * relu(q . key) for each key up to the query's position, from the first on; a key is the
                 // last head_dim columns of its row; n: the longest sequence
  kTopKeys,  // scores[m,n] -> chosen[m,k]: the positions of the k largest that the query may see (the first
             // of equals), ascending; -1 behind them where it sees fewer; groups sequences of kv keys, as
             // attention
  kAbsorbQueries,   // q[m,heads*head_dim], W[heads*(nope+v_dim),n] -> [m,heads*(n+k)]: of each head q's nope
                    // columns times the head's first nope rows of W, then its k rotary columns; nope =
                    // head_dim - k, n = the latent's columns
  kAbsorbedValues,  // x[m,heads*n], W[heads*(nope+v_dim),n] -> y[m,heads*v_dim]: of each head x times its
                    // last v_dim rows of W
  kConvolution,  // x[m,n], W[n,k] -> y[m,n], state[.,(k-1)*n] in place: silu of the sum over i < k of W[.,i]
                 // times the row k-1-i before, column by column; rows before a sequence's first one are
                 // zeros, those before the batch are in its row of the state (BatchSequence::state), oldest
                 // first, where its last k-1 rows stay
  kDeltaRule,    // qkv[m,n], ba[m,2*heads], decay[2,heads] -> o[m,heads*v_dim], state[.,heads*head_dim*v_dim]
                 // in place: the gated delta rule (arXiv 2412.06464): of value head h, S <- exp(g) S; S += k
                 // (beta (v - S'k))'; o = S'q, where beta = sigmoid(b), g = -exp(decay[0]) softplus(a +
                 // decay[1]), q and k (n: kv_heads of each, then v) of key head h*kv_heads/heads over their
                 // lengths, q times 1/sqrt(head_dim). S starts as zeros at a sequence's first row
  kLastRows,     // x[m,n] -> y[groups,n]: the last row of each sequence
  kGreedySample,  // logits[m,n] -> best[m,2]: the largest and its id (the lowest of equals); columns are
                  // vocabulary [i*n, (i+1)*n) of member i of the tensor group; of groups: rows [i*m/groups,
                  // (i+1)*m/groups) are those of member i
  kNextToken,  // best[m*groups,2] of all shards, one after the other -> generated[requests,n], in place: the
               // best id of each of m sequences, at the place that follows its tokens
  kPlaceExperts,  // weights of experts that have come, one below the other -> W[slots,.,n], in place: each
                  // into its slots, as the fragment's transfer says for the op's layer; m rows of n in all,
                  // in `groups` slots; other slots stay
  kDispatch,  // x[m,n] (, weights[m,k]) -> received tokens[.,n] (, received weights[.,k]): all-to-all by the
              // route; a token goes once to every rank that holds one of its experts; received weights are
              // zero for experts held elsewhere; rows arrive in the order of sources, then of tokens
  kCombine,   // received rows[.,n] (, received weights[.,k]) -> sums per source token [m,n] (, weights[m,k]):
              // the way back
  kAllReduce,      // x[m,n] -> sum over the group
  kReduceScatter,  // x[m,n] -> this rank's m/size rows of the sum
  kAllGather,      // x[m,n] -> rows of all members [m*size,n]
               // Gradients and weights: several kRank tensors, the outputs being the inputs, in place. Each
               // tensor's elements are cut, flat, into shards of ceil(elements/size); reduce-scatter leaves
               // the sum in the member's own shard (the rest is undefined), all-gather fills the other
               // shards, all-reduce sums everything. Sharded ones (Tensor::shards): all-gather reads the
               // members' shards and writes whole tensors, reduce-scatter reads whole tensors and adds (+=)
               // the sums to the member's shards
  kBroadcast,  // x[m,n] of member 0 -> everyone
  kAllToAll,   // x[m,n] -> row block i goes to member i; k > 0: of a context group,
               // workloads/schedule/context_part.h Of experts, in a fragment with a transfer: W[slots,.,n],
               // ... -> the experts of the same layers that come to this rank, [experts,.,n] each, one below
               // the other in the order of their arrival
  kSend,       // x[m,n] to the other member of the group
  kRecv,       // () -> x[m,n]
               // Between a device and the memory of its host, over PCIe or C2C and that memory; no group, m =
               // elements:
  kCopyToHost,    // x, ... -> the same in host memory (Tensor::on_host), one output for each input
  kCopyFromHost,  // x, ... in host memory -> the same on the device
};
inline constexpr int kNumOpKinds = static_cast<int>(OpKind::kCopyFromHost) + 1;

std::string_view to_string(OpKind kind);  // "gemm", "grouped_gemm_dgrad", ...

// True for the kinds that move bytes over wires (kDispatch and after).
constexpr bool is_communication(OpKind kind) {
  return kind >= OpKind::kDispatch;
}
// Several members meet; not a message from one to another.
constexpr bool is_collective(OpKind kind) {
  return is_communication(kind) && kind < OpKind::kSend;
}
// Shape::k of an activation that multiplies each row by the sigmoid of its own gate.
inline constexpr std::int64_t kGateOfRows = 4;

// Shape::k of kNorm and kNormGrad: 0, rows that stand whole on a rank; 1 (kNorm alone), the same times
// silu of a gate; kOfSharedRows, rows whose columns ranks share, with means that they are told: those that
// kRowMeans took, of squares (k = 0) for both and of projections (k = 1) for kNormGrad.
inline constexpr std::int64_t kOfSharedRows = 2;

// Shape::k of a kRotary whose kernel rotates in place: what it does not rotate it neither reads nor writes,
// as SGLang's and vLLM's of latent attention's queries (rotary_emb on a view of q's last columns).
inline constexpr std::int64_t kInPlace = 3;
// Shape::kv_heads of a kMlaKeys whose values stay where kv has them: attention is given a strided view
// (SGLang, forward_mha.py: v = kv[..., nope:], concat_mla_k; vLLM, mla_attention.py: kv_nope.split,
// _concat_k_nope_k_pe).
inline constexpr std::int32_t kValuesStay = 1;

// Shape::heads of a product whose kernel adds a bias at its end, or sums a bias's gradient on its way.
inline constexpr std::int32_t kWithBias = 1;
inline constexpr std::int32_t kWithBiasApart = 2;  // the same in a pass of its own behind it

// A product for each of several experts.
constexpr bool is_grouped(OpKind kind) {
  return kind >= OpKind::kGroupedGemm && kind <= OpKind::kGroupedGemmWgrad;
}
// The gradient of a matrix of weights, or of each expert's.
constexpr bool is_weight_gradient(OpKind kind) {
  return kind == OpKind::kGemmWgrad || kind == OpKind::kGroupedGemmWgrad;
}
// Over whole sequences, forward or backward; not over a cache.
constexpr bool is_attention(OpKind kind) {
  return kind == OpKind::kAttention || kind == OpKind::kAttentionGrad;
}
// The same and over a cache: queries meet keys.
constexpr bool is_any_attention(OpKind kind) {
  return is_attention(kind) || kind == OpKind::kPagedAttention || kind == OpKind::kIndexScores;
}
// Of one rank alone, between its device and its host.
constexpr bool is_host_copy(OpKind kind) {
  return kind >= OpKind::kCopyToHost;
}

// The numbers that fix an op's work. Fields that a kind does not name above are zero.
struct Shape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int32_t groups = 0;  // experts of a grouped GEMM; sequences of an attention op; of an op on a piece
                            // see workloads/schedule/row_window.h
  std::int32_t heads = 0;   // query heads
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;  // of queries and keys
  std::int32_t v_dim = 0;
  std::int64_t kv = 0;  // keys per sequence; queries are the last m/groups positions of them; of an op on a
                        // piece its first row
  std::int32_t window =
      0;  // attention: a query sees at most so many keys, its own included; 0: all before it

  bool operator==(const Shape&) const = default;
};

}  // namespace moebius
