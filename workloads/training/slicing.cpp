#include "workloads/training/slicing.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

double attention_flops(const Model& model, std::int64_t sequence_length) {
  const double h = model.hidden;
  const double scores =
      2.0 * (model.query_dim() + model.value_dim()) * static_cast<double>(sequence_length) / 2;
  if (model.attention == AttentionKind::kMla) {
    const Mla& mla = model.mla;
    const double q =
        mla.q_rank > 0 ? h * mla.q_rank + double(mla.q_rank) * model.query_dim() : h * model.query_dim();
    const double kv =
        h * (mla.kv_rank + mla.rope_dim) + double(mla.kv_rank) * model.heads * (mla.nope_dim + mla.v_dim);
    return 2 * (q + kv + h * model.value_dim()) + scores;
  }
  return 2 * h * (model.query_dim() + model.value_dim() + 2.0 * model.kv_heads * model.head_dim) + scores;
}

double mlp_flops(const Model& model, int layer) {
  const double matrices = model.gated ? 3 : 2;
  const double h = model.hidden;
  if (!model.is_moe_layer(layer)) return 2 * matrices * h * model.dense_width;
  const Experts& experts = model.experts;
  return 2 * matrices * h * (double(experts.active) * experts.width + experts.shared_width) +
         2 * h * experts.routed;
}

// FLOPs of everything on the last stage that is not a layer.
double tail_flops(const Model& model, std::int64_t sequence_length) {
  const double head = 2.0 * model.hidden * model.vocabulary;
  const double projection = 4.0 * model.hidden * model.hidden;
  const double module = layer_flops(model, model.layers - 1, sequence_length) + projection + head;
  return head + model.mtp_layers * module;
}

}  // namespace

double layer_flops(const Model& model, int layer, std::int64_t sequence_length) {
  return attention_flops(model, sequence_length) + mlp_flops(model, layer);
}

std::vector<StageSlice> slice_balanced(const Model& model, std::int64_t sequence_length, int stages) {
  const int layers = model.layers;
  CHECK(stages >= 1 && layers >= stages, fmt::format("{} layers on {} stages", layers, stages));
  std::vector<double> prefix(layers + 1, 0.0);
  for (int i = 0; i < layers; ++i) prefix[i + 1] = prefix[i] + layer_flops(model, i, sequence_length);
  const double tail = tail_flops(model, sequence_length);
  // best[s][i]: stages 0..s hold layers 0..i-1; (largest stage, sum of squares), lexicographic.
  using Cost = std::pair<double, double>;
  const Cost kNever{std::numeric_limits<double>::infinity(), 0};
  std::vector<std::vector<Cost>> best(stages, std::vector<Cost>(layers + 1, kNever));
  std::vector<std::vector<int>> from(stages, std::vector<int>(layers + 1, 0));
  for (int s = 0; s < stages; ++s) {
    for (int i = s + 1; i <= layers - (stages - 1 - s); ++i) {
      for (int j = s; j < i; ++j) {
        if (s == 0 && j != 0) continue;
        const double load = prefix[i] - prefix[j] + (s == stages - 1 ? tail : 0);
        const Cost before = s == 0 ? Cost{0, 0} : best[s - 1][j];
        const Cost cost{std::max(before.first, load), before.second + load * load};
        if (cost < best[s][i]) best[s][i] = cost, from[s][i] = j;
      }
    }
  }
  std::vector<StageSlice> slices(stages);
  int end = layers;
  for (int s = stages - 1; s >= 0; --s) {
    const int begin = from[s][end];
    slices[s] = {begin, end - begin, s == 0, s == stages - 1};
    end = begin;
  }
  return slices;
}

}  // namespace moebius
