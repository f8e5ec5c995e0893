#include "workloads/serving/separation/lower_encoder.h"

#include <cmath>

#include <fmt/format.h>

#include "workloads/training/layers/builder.h"

namespace moebius {
namespace {

class EncoderWriter {
 public:
  EncoderWriter(const EncoderWork& work, int images)
      : of_(*work.plan.model),
        tp_(work.plan.tp),
        outputs_(work.outputs),
        images_(images),
        patches_(work.plan.patches + of_.extra_patches),
        builder_(fmt::format("encode {} images", images), Phase::kForward) {}

  FragmentPtr write() {
    TensorId x = product(builder_.transient(rows(), colours(), DType::kBf16, Role::kInput), Role::kEmbedding,
                         of_.hidden);
    for (int layer = 0; layer < of_.layers; ++layer) x = write_layer(x, layer);
    write_merger(x);
    return builder_.freeze_it();
  }

 private:
  std::int64_t rows() const { return std::int64_t{images_} * patches_; }
  std::int64_t colours() const { return std::int64_t{3} * of_.patch * of_.patch; }

  TensorId result(std::int64_t m, std::int64_t n, Role role) {
    return builder_.transient(m, n, DType::kBf16, role);
  }

  TensorId weight(Role role, std::int64_t n, std::int64_t k) {
    return builder_.add({.scope = Scope::kRank,
                         .memory = MemoryKind::kWeights,
                         .role = role,
                         .layer = builder_.layer,
                         .key = parameter_key(role, builder_.layer, Part::kWeight),
                         .rows = n,
                         .columns = k,
                         .init = 1 / std::sqrt(static_cast<double>(k))});
  }

  TensorId product(TensorId x, Role role, std::int64_t n) {
    const std::int64_t m = builder_.tensor(x).rows, k = builder_.tensor(x).columns;
    const TensorId y = result(m, n, role);
    const bool first = builder_.fragment().ops.empty();  // pixels are there
    builder_.emit(
        {.kind = OpKind::kGemm, .role = role, .shape = {.m = m, .n = n, .k = k}},
        first ? std::vector<TensorId>{weight(role, n, k)} : std::vector<TensorId>{x, weight(role, n, k)},
        {y});
    return y;
  }

  TensorId norm(TensorId x, Role role) {
    const std::int64_t m = builder_.tensor(x).rows, n = builder_.tensor(x).columns;
    const TensorId y = result(m, n, role);
    builder_.emit({.kind = OpKind::kNorm, .role = role, .shape = {.m = m, .n = n}}, {x, weight(role, 1, n)},
                  {y});
    return y;
  }

  TensorId activation(TensorId x, std::int64_t n, bool gated) {
    const std::int64_t m = builder_.tensor(x).rows;
    const TensorId y = result(m, n, Role::kGateUp);
    builder_.emit(
        {.kind = OpKind::kActivation, .role = Role::kGateUp, .shape = {.m = m, .n = n, .k = gated ? 2 : 1}},
        {x}, {y});
    return y;
  }

  // Of what the ranks of a replica have each a part of, added to the stream.
  TensorId joined(TensorId x, TensorId part) {
    const std::int64_t m = builder_.tensor(x).rows, n = builder_.tensor(x).columns;
    if (tp_ > 1) {
      const TensorId sum = result(m, n, Role::kResidual);
      Op op{.kind = OpKind::kAllReduce,
            .lane = Lane::kTensorComm,
            .role = Role::kResidual,
            .group = GroupRole::kTensor,
            .match = builder_.next_match(),
            .shape = {.m = m, .n = n}};
      op.payload = {static_cast<double>(m * n) * element_bytes(DType::kBf16)};
      builder_.emit(op, {part}, {sum});
      part = sum;
    }
    const TensorId y = result(m, n, Role::kResidual);
    builder_.emit({.kind = OpKind::kAdd, .role = Role::kResidual, .shape = {.m = m, .n = n}}, {x, part}, {y});
    return y;
  }

  TensorId attention(TensorId qkv, int layer) {
    const int heads = of_.heads / tp_, head = of_.hidden / of_.heads;
    const std::int64_t seen = of_.sees_all(layer) ? patches_ : std::min(of_.window, patches_);
    const auto groups = static_cast<std::int32_t>((rows() + seen - 1) / seen);
    const TensorId o = result(rows(), std::int64_t{heads} * head, Role::kAttention);
    for (int triangle = 0; triangle < 2; ++triangle)
      builder_.emit({.kind = OpKind::kAttention,
                     .role = Role::kAttention,
                     .shape = {.m = groups * seen,
                               .groups = groups,
                               .heads = heads,
                               .kv_heads = heads,
                               .head_dim = head,
                               .v_dim = head,
                               .kv = seen}},
                    {qkv}, {o});
    return o;
  }

  TensorId write_layer(TensorId x, int layer) {
    builder_.layer = static_cast<std::int16_t>(layer);
    const std::int64_t h = of_.hidden;
    const TensorId qkv = product(norm(x, Role::kAttentionNorm), Role::kQkv, 3 * h / tp_);
    x = joined(x, product(attention(qkv, layer), Role::kO, h));
    const std::int64_t width = of_.width / tp_;
    const TensorId up = product(norm(x, Role::kMlpNorm), Role::kGateUp, (of_.gated ? 2 : 1) * width);
    return joined(x, product(activation(up, width, of_.gated), Role::kDown, h));
  }

  // Patches that become one token stand side by side; each rank does it for its part of them.
  void write_merger(TensorId x) {
    builder_.layer = -1;
    const std::int64_t merged = std::int64_t{of_.hidden} * of_.patches_of_token();
    const std::int64_t tokens = std::max<std::int64_t>(1, rows() / of_.patches_of_token() / tp_);
    const TensorId normed = norm(x, Role::kFinalNorm), y = result(tokens, merged, Role::kHead);
    builder_.emit({.kind = OpKind::kGemm,
                   .role = Role::kMtpProjection,
                   .shape = {.m = tokens, .n = merged, .k = merged}},
                  {normed, weight(Role::kMtpProjection, merged, merged)}, {y});
    product(activation(y, merged, false), Role::kHead, outputs_);
  }

  const VisionEncoder& of_;
  int tp_, outputs_, images_, patches_;
  FragmentBuilder builder_;
};

}  // namespace

FragmentPtr lower_encoder(const EncoderWork& work, int images) {
  return EncoderWriter(work, images).write();
}

}  // namespace moebius
