// Tokens are put into the buffers of experts, and taken out of them, by products with one-hot masks: of each
// group of S tokens that has a capacity of its own, x[S,h] -> buffers[E C,h] and back. GShard (Lepikhin et
// al. 2020, algorithm 2: einsums GSEC,GSM->EGCM and GSEC,EGCM->GSM), DeepSpeed-MoE (sharded_moe.py: sec,sm->
// ecm and sec,ecm->sm), MaxText (moe.py, dense_matmul: BSM,BSEC->EBCM and EBCM,BSEC->BSM). The first mask
// says where a token goes and is made of truth values: it has no gradient. The second one has the routing
// weights, which therefore stay with the token.
#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// A pass that writes both masks in the 16 bits in which they are multiplied: as many bytes as one that reads
// and writes one of them. What the first one says is kept in a byte an element.
OneHotMasks write_masks(LayerWriter& writer, TensorId weights, std::int64_t places) {
  FragmentBuilder& builder = writer.builder();
  const std::int64_t m = writer.rows(weights);
  const OneHotMasks masks{builder.transient(m, places, DType::kInt8, Role::kGate),
                          builder.transient(m, places, DType::kBf16, Role::kGate)};
  writer.emit({.kind = OpKind::kSplit, .role = Role::kGate, .shape = {.m = m, .n = places}}, {weights},
              {masks.places, masks.weights});
  return masks;
}

// Groups are multiplied one beside the other: all have m = E C rows of k = S tokens, or S of E C.
TensorId write_masked(LayerWriter& writer, TensorId mask, TensorId rows, std::int64_t results) {
  const std::int64_t n = writer.columns(rows), elements = writer.rows(mask) * writer.columns(mask);
  const TensorId y = writer.builder().transient(results, n, DType::kBf16, Role::kExperts);
  writer.emit({.kind = OpKind::kGemm,
               .role = Role::kExperts,
               .shape = {.m = results, .n = n, .k = elements / results}},
              {mask, rows}, {y});
  return y;
}

bool writes_masks(const Op& op) {
  return op.kind == OpKind::kSplit && op.role == Role::kGate;
}

bool multiplies_mask(const Op& op) {
  return op.kind == OpKind::kGemm && op.role == Role::kExperts;
}

}  // namespace moebius
