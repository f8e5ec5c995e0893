#include "workloads/serving/delta_network.h"

#include "workloads/serving/cache_tensor.h"

namespace moebius {
namespace {

class DeltaNetwork {
 public:
  DeltaNetwork(LayerWriter& writer, const CachedBatch& batch)
      : w_(writer),
        b_(batch),
        model_(writer.model()),
        delta_(model_.delta),
        tp_(writer.plan().tp),
        sequences_(static_cast<std::int32_t>(batch.batch->sequences.size())) {}

  TensorId write(TensorId normed) {
    const std::int64_t convolved = delta_.convolved_columns(), values = delta_.value_columns();
    const TensorId maps = w_.linear(normed, {Role::kQkv, convolved + values, model_.hidden, Cut::kColumns});
    const TensorId gates = w_.linear(normed, {.role = Role::kDeltaGates,
                                              .out = 2 * delta_.value_heads,
                                              .in = model_.hidden,
                                              .cut = Cut::kColumns,
                                              .high_precision = true});
    const auto parts = w_.split(maps, {convolved / tp_, values / tp_}, Role::kQkv);
    const TensorId o = rule(convolution(parts[0]), gates);
    return w_.gated_norm(o, parts[1], Role::kDeltaNorm, delta_.value_heads / tp_);
  }

 private:
  int layer() const { return w_.builder().layer; }

  TensorId convolution(TensorId x) {
    const std::int64_t m = w_.rows(x), n = w_.columns(x);
    const TensorId weight = w_.weight({.role = Role::kConvolution,
                                       .out = n * tp_,
                                       .in = delta_.convolution,
                                       .cut = Cut::kColumns,
                                       .high_precision = true},
                                      n, delta_.convolution);
    const TensorId kept = w_.builder().add(convolved_tensor(model_, tp_, b_.states, layer()));
    const TensorId y = w_.builder().transient(m, n, DType::kBf16, Role::kConvolution);
    w_.emit({.kind = OpKind::kConvolution,
             .role = Role::kConvolution,
             .batch = b_.index,
             .shape = {.m = m, .n = n, .k = delta_.convolution, .groups = sequences_}},
            {x, weight}, {y, kept});
    return y;
  }

  TensorId rule(TensorId qkv, TensorId gates) {
    const int heads = delta_.value_heads / tp_;
    const std::int64_t m = w_.rows(qkv);
    // Row 0 the logarithm of the decay, row 1 its bias, for the heads of this rank.
    const TensorId decay = w_.weight({.role = Role::kDeltaRule,
                                      .out = 2,
                                      .in = delta_.value_heads,
                                      .cut = Cut::kRows,
                                      .high_precision = true},
                                     2, heads);
    const TensorId state = w_.builder().add(state_tensor(model_, tp_, b_.states, layer()));
    const TensorId o =
        w_.builder().transient(m, std::int64_t{heads} * delta_.value_dim, DType::kBf16, Role::kDeltaRule);
    w_.emit({.kind = OpKind::kDeltaRule,
             .role = Role::kDeltaRule,
             .batch = b_.index,
             .shape = {.m = m,
                       .n = w_.columns(qkv),
                       .groups = sequences_,
                       .heads = heads,
                       .kv_heads = delta_.key_heads / tp_,
                       .head_dim = delta_.key_dim,
                       .v_dim = delta_.value_dim}},
            {qkv, gates, decay}, {o, state});
    return o;
  }

  LayerWriter& w_;
  const CachedBatch& b_;
  const Model& model_;
  const DeltaNet& delta_;
  int tp_;
  std::int32_t sequences_;
};

}  // namespace

TensorId write_delta_network(LayerWriter& writer, const CachedBatch& batch, TensorId normed) {
  return DeltaNetwork(writer, batch).write(normed);
}

}  // namespace moebius
