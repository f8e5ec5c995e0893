// Attention forward and backward over several tiles and chunks of keys, for each form of heads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/op_case.h"

namespace moebius {

inline OperandCase empty_operand(std::int64_t rows, std::int64_t columns, DType dtype = DType::kBf16) {
  return {rows, columns, dtype, {}};
}

inline std::vector<OpCase> attentions() {
  struct Form {
    const char* name;
    int heads, kv_heads, head_dim, v_dim, window;
  };
  constexpr std::int64_t sequences = 2, queries = 300;
  std::vector<OpCase> cases;
  for (const Form f : {Form{"grouped queries", 4, 2, 16, 16, 0}, Form{"latent", 2, 2, 192, 128, 0},
                       Form{"window", 2, 1, 8, 8, 50}, Form{"window of wide heads", 2, 1, 48, 32, 50}}) {
    const Shape shape{.m = sequences * queries,
                      .groups = sequences,
                      .heads = f.heads,
                      .kv_heads = f.kv_heads,
                      .head_dim = f.head_dim,
                      .v_dim = f.v_dim,
                      .kv = queries,
                      .window = f.window};
    const std::int64_t m = shape.m;
    const std::vector<OperandCase> qkv{random_operand(61, m, f.heads * f.head_dim),
                                       random_operand(62, m, f.kv_heads * f.head_dim),
                                       random_operand(63, m, f.kv_heads * f.v_dim)};
    const OpCase forward{std::string("attention, ") + f.name,
                         {.kind = OpKind::kAttention, .shape = shape},
                         qkv,
                         {empty_operand(m, f.heads * f.v_dim), empty_operand(m, f.heads, DType::kFp32)}};
    cases.push_back(forward);
    const OpResults results =
        execute_both(forward);  // the backward pass reads what the host's forward pass left
    OpCase back{
        std::string("attention_grad, ") + f.name, {.kind = OpKind::kAttentionGrad, .shape = shape}, {}, {}};
    back.inputs = {random_operand(64, m, f.heads * f.v_dim),
                   qkv[0],
                   qkv[1],
                   qkv[2],
                   {m, f.heads * f.v_dim, DType::kBf16, results.host[0]},
                   {m, f.heads, DType::kFp32, results.host[1]}};
    back.outputs = {empty_operand(m, f.heads * f.head_dim), empty_operand(m, f.kv_heads * f.head_dim),
                    empty_operand(m, f.kv_heads * f.v_dim)};
    cases.push_back(back);
  }
  return cases;
}

}  // namespace moebius
