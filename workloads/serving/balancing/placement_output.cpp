// A placement as JSON and as a table.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "workloads/serving/balancing/placement_request.h"

namespace moebius {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::int32_t most_replicas(const LayerPlacement& layer) {
  return *std::max_element(layer.replicas_of_expert.begin(), layer.replicas_of_expert.end());
}

// "[...], [...]": one text for each layer.
template <class OfLayer>
std::string layers_json(const PlacedLayers& placed, OfLayer of_layer) {
  std::string text = "[";
  for (std::size_t i = 0; i < placed.layers.size(); ++i) text += (i == 0 ? "[" : ", [") + of_layer(i) + "]";
  return text + "]";
}

std::string slots_json(const LayerPlacement& layer, std::int32_t width) {
  std::string text;
  for (std::vector<std::int32_t>& slots : slots_of_experts(layer)) {
    slots.resize(width, -1);
    fmt::format_to(Out(text), "{}[{}]", text.empty() ? "" : ", ", fmt::join(slots, ", "));
  }
  return text;
}

struct LayerRow {
  std::size_t layer = 0;
  double before = 0, after = 0;  // balancedness; before: 0 where there is none
};

std::vector<LayerRow> rows_of(const PlacedLayers& placed) {
  std::vector<LayerRow> rows;
  for (std::size_t i = 0; i < placed.layers.size(); ++i) {
    const std::vector<double> before = placed.gpu_loads_before(i);
    rows.push_back({i, before.empty() ? 0 : balancedness(before), balancedness(placed.gpu_loads(i))});
  }
  return rows;
}

std::string share_text(double share) {
  return share > 0 ? fmt::format("{:.4f}", share) : "-";
}

double mean_of(const std::vector<LayerRow>& rows, double LayerRow::*figure) {
  double sum = 0;
  for (const LayerRow& row : rows) sum += row.*figure;
  return sum / static_cast<double>(rows.size());
}

// The expert with most load, of its layer's.
std::string heaviest_text(const std::vector<double>& loads, const LayerPlacement& layer) {
  const auto most = std::max_element(loads.begin(), loads.end());
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  const auto expert = most - loads.begin();
  return fmt::format("{} with {:.2f}%, {} replicas", expert, sum > 0 ? 100 * *most / sum : 0.0,
                     layer.replicas_of_expert[expert]);
}

void gpus_picture(Out out, const PlacedLayers& placed, std::size_t layer) {
  constexpr std::size_t kMostGpus = 64;
  constexpr int kWidth = 40;
  const std::vector<double> loads = placed.gpu_loads(layer);
  const double most = *std::max_element(loads.begin(), loads.end());
  const std::size_t of_gpu = placed.request.shape.slots_of_gpu();
  for (std::size_t gpu = 0; gpu < std::min(loads.size(), kMostGpus); ++gpu) {
    const int width = most > 0 ? static_cast<int>(std::lround(kWidth * loads[gpu] / most)) : 0;
    const auto first =
        placed.layers[layer].expert_of_slot.begin() + static_cast<std::ptrdiff_t>(gpu * of_gpu);
    const std::vector<std::int32_t> experts(
        first, first + static_cast<std::ptrdiff_t>(std::min<std::size_t>(of_gpu, 8)));
    fmt::format_to(out, "  gpu {:<5} {:>12.6g}  {:<40}  experts {}{}\n", gpu, loads[gpu],
                   std::string(width, '#'), fmt::join(experts, ", "), of_gpu > 8 ? ", ..." : "");
  }
  if (loads.size() > kMostGpus) fmt::format_to(out, "  and {} more\n", loads.size() - kMostGpus);
}

}  // namespace

std::string placement_json(const PlacedLayers& placed) {
  std::int32_t width = 0;
  for (const LayerPlacement& layer : placed.layers) width = std::max(width, most_replicas(layer));
  const auto& layers = placed.layers;
  const auto joined = [](const auto& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); };
  return fmt::format("{{\"phy2log\": {}, \"log2phy\": {}, \"logcnt\": {}, \"gpu_load\": {}}}\n",
                     layers_json(placed, [&](std::size_t i) { return joined(layers[i].expert_of_slot); }),
                     layers_json(placed, [&](std::size_t i) { return slots_json(layers[i], width); }),
                     layers_json(placed, [&](std::size_t i) { return joined(layers[i].replicas_of_expert); }),
                     layers_json(placed, [&](std::size_t i) { return joined(placed.gpu_loads(i)); }));
}

std::string placement_text(const PlacedLayers& placed) {
  const PlacementShape& shape = placed.request.shape;
  std::string text;
  const Out out(text);
  fmt::format_to(out, "{} layers of {} experts in {} slots on {} gpus of {} nodes, {}\n\n",
                 placed.layers.size(), shape.experts, shape.replicas, shape.gpus, shape.nodes,
                 shape.hierarchical() ? fmt::format("hierarchical: {} groups stay on a node", shape.groups)
                                      : "global: any expert on any gpu");
  const std::vector<LayerRow> rows = rows_of(placed);
  fmt::format_to(out, "balancedness: mean over most load of a gpu; before: a replica each, in order{}\n",
                 rows.front().before > 0 ? "" : " (experts do not divide over the gpus)");
  fmt::format_to(out, "  {:<8} {:>8} {:>8}  {}\n", "layer", "before", "after", "heaviest expert");
  for (const LayerRow& row : rows)
    fmt::format_to(out, "  {:<8} {:>8} {:>8}  {}\n", row.layer, share_text(row.before), share_text(row.after),
                   heaviest_text(placed.request.loads[row.layer], placed.layers[row.layer]));
  fmt::format_to(out, "  {:<8} {:>8} {:>8}\n", "mean", share_text(mean_of(rows, &LayerRow::before)),
                 share_text(mean_of(rows, &LayerRow::after)));
  const auto worst = std::min_element(rows.begin(), rows.end(),
                                      [](const LayerRow& a, const LayerRow& b) { return a.after < b.after; });
  fmt::format_to(out, "\nlayer {}, the least even one\n", worst->layer);
  gpus_picture(out, placed, worst->layer);
  return text;
}

}  // namespace moebius
