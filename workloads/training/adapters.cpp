#include "workloads/training/adapters.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace moebius {
namespace {

std::optional<AdapterTarget> target_of(Role matrix) {
  const bool latent =
      matrix == Role::kQA || matrix == Role::kQB || matrix == Role::kKvA || matrix == Role::kKvB;
  if (latent || matrix == Role::kQkv || matrix == Role::kQ) return AdapterTarget::kQkv;
  if (matrix == Role::kO) return AdapterTarget::kAttentionOut;
  if (matrix == Role::kGateUp || matrix == Role::kSharedGateUp) return AdapterTarget::kMlpUp;
  if (matrix == Role::kDown || matrix == Role::kSharedDown) return AdapterTarget::kMlpDown;
  if (matrix == Role::kExpertGateUp) return AdapterTarget::kExpertUp;
  if (matrix == Role::kExpertDown) return AdapterTarget::kExpertDown;
  return std::nullopt;
}

// Rows and columns together, of those matrices that have adapters: so many parameters for each of the rank.
class Sides {
 public:
  explicit Sides(const Adapters& adapters) : adapters_(adapters) {}

  void add(Role matrix, double out, double in) {
    if (adapters_.beside(matrix)) sum += out + in;
  }
  void add_mlp(const Model& model, double width, Role up, Role down) {
    add(up, (model.gated ? 2 : 1) * width, model.hidden);
    add(down, model.hidden, width);
  }
  double sum = 0;

 private:
  const Adapters& adapters_;
};

void add_attention(const Model& model, Sides& sides) {
  const Mla& mla = model.mla;
  if (model.attention != AttentionKind::kMla) {
    sides.add(Role::kQkv, model.query_dim() + 2.0 * model.kv_heads * model.head_dim, model.hidden);
  } else {
    if (mla.q_rank > 0) sides.add(Role::kQA, mla.q_rank, model.hidden);
    if (mla.q_rank > 0) sides.add(Role::kQB, model.query_dim(), mla.q_rank);
    if (mla.q_rank == 0) sides.add(Role::kQ, model.query_dim(), model.hidden);
    sides.add(Role::kKvA, mla.kv_rank + mla.rope_dim, model.hidden);
    sides.add(Role::kKvB, model.heads * (mla.nope_dim + mla.v_dim), mla.kv_rank);
  }
  sides.add(Role::kO, model.hidden, model.value_dim());
}

}  // namespace

bool Adapters::beside(Role matrix) const {
  const std::optional<AdapterTarget> target = target_of(matrix);
  return any() && target && std::find(targets.begin(), targets.end(), *target) != targets.end();
}

bool has_adapters(const Model& model, int layer, const Adapters& adapters) {
  Sides sides(adapters);
  add_attention(model, sides);
  const Experts& experts = model.experts;
  if (!model.is_moe_layer(layer)) {
    sides.add_mlp(model, model.dense_width, Role::kGateUp, Role::kDown);
  } else {
    if (experts.shared_width > 0)
      sides.add_mlp(model, experts.shared_width, Role::kSharedGateUp, Role::kSharedDown);
    sides.add_mlp(model, experts.width, Role::kExpertGateUp, Role::kExpertDown);
  }
  return sides.sum > 0;
}

AdapterCount count_adapters(const Model& model, const Adapters& adapters) {
  Sides dense(adapters), expert(adapters);
  const Experts& experts = model.experts;
  for (int layer = 0; layer < model.layers; ++layer) {
    add_attention(model, dense);
    if (!model.is_moe_layer(layer)) {
      dense.add_mlp(model, model.dense_width, Role::kGateUp, Role::kDown);
      continue;
    }
    if (experts.shared_width > 0)
      dense.add_mlp(model, experts.shared_width, Role::kSharedGateUp, Role::kSharedDown);
    expert.add_mlp(model, experts.width, Role::kExpertGateUp, Role::kExpertDown);
  }
  return {adapters.rank * (dense.sum + experts.routed * expert.sum),
          adapters.rank * (dense.sum + experts.active * expert.sum)};
}

std::string describe_adapters(const Model& model, const Adapters& adapters) {
  if (!adapters.any()) return "";
  const double trained = count_adapters(model, adapters).all, frozen = count_parameters(model).total();
  return fmt::format(
      "trained        adapters of rank {}: {:.3f} M parameters, {:.3f}% of the {:.3f} B frozen\n",
      adapters.rank, trained * 1e-6, 100 * trained / frozen, frozen * 1e-9);
}

}  // namespace moebius
