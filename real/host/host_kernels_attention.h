// Causal attention on the CPU, forward and backward: MHA, GQA, MLA (keys wider than values), sliding windows.
#pragma once

#include <cstdint>
#include <span>

namespace moebius {

// Queries are the last `queries` of the `keys` positions of their sequence and see themselves and what is
// before, at most `window` keys when that is not 0. Query head h reads key head h*kv_heads/heads.
struct AttentionShape {
  std::int64_t sequences = 1, queries = 0, keys = 0;  // per sequence
  std::int64_t heads = 1, kv_heads = 1, head_dim = 0, v_dim = 0;
  std::int64_t window = 0;
  double score_scale = 1;  // beside 1/sqrt(head_dim)
  bool causal = true;      // else queries see all keys, however many there are
};

template <class Real>
struct AttentionOperands {
  std::span<const Real> q;  // [sequences*queries, heads*head_dim]
  std::span<const Real> k;  // [sequences*keys, kv_heads*head_dim]
  std::span<const Real> v;  // [sequences*keys, kv_heads*v_dim]
};

template <class Real>
struct AttentionResult {
  std::span<Real> o;                   // [sequences*queries, heads*v_dim]
  std::span<Real> lse;                 // [sequences*queries, heads]: log of the sum of exp(score)
  std::span<Real> probabilities = {};  // [sequences*queries, heads*keys]; empty: not wanted
};

template <class Real>
void attention(const AttentionShape& shape, const AttentionOperands<Real>& operands,
               const AttentionResult<Real>& result);

template <class Real>
struct AttentionForward {  // what the backward pass reads of the forward pass
  std::span<const Real> o, lse;
  std::span<const Real> probabilities = {};  // empty: computed anew from lse
};

template <class Real>
struct AttentionGradient {
  std::span<Real> dq, dk, dv;  // added to
};

template <class Real>
void attention_grad(const AttentionShape& shape, std::span<const Real> d_o,
                    const AttentionOperands<Real>& operands, const AttentionForward<Real>& forward,
                    const AttentionGradient<Real>& gradient);

}  // namespace moebius
