#include "workloads/training/pipeline/slicing.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
std::vector<StageSlice> slice_balanced(const Model& model, std::int64_t sequence_length, int stages,
                                       const std::vector<double>& speeds) {
  const int layers = model.layers;
  CHECK(stages >= 1 && layers >= stages, fmt::format("{} layers on {} stages", layers, stages));
  std::vector<double> prefix(layers + 1, 0.0);
  for (int i = 0; i < layers; ++i)
    prefix[i + 1] = prefix[i] + layer_flops_per_token(model, i, sequence_length, true).value;
  const double tail = head_flops_per_token(model, sequence_length, true).value;
  // best[s][i]: stages 0..s hold layers 0..i-1; (largest stage, sum of squares), lexicographic.
  using Cost = std::pair<double, double>;
  const Cost kNever{std::numeric_limits<double>::infinity(), 0};
  std::vector<std::vector<Cost>> best(stages, std::vector<Cost>(layers + 1, kNever));
  std::vector<std::vector<int>> from(stages, std::vector<int>(layers + 1, 0));
  for (int s = 0; s < stages; ++s) {
    for (int i = s + 1; i <= layers - (stages - 1 - s); ++i) {
      for (int j = s; j < i; ++j) {
        if (s == 0 && j != 0) continue;
        const double flops = prefix[i] - prefix[j] + (s == stages - 1 ? tail : 0);
        const double load = speeds.empty() ? flops : flops / speeds[s];
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

std::vector<double> speeds_of_stages(const StagePlacement& placement, const std::vector<double>& by_rank) {
  if (by_rank.empty()) return {};
  std::vector<double> speeds(placement.stages(), 0);
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      double& speed = speeds[placement.stage_of(rank, chunk)];
      speed = speed > 0 ? std::min(speed, by_rank[rank]) : by_rank[rank];
    }
  }
  return speeds;
}

std::string layers_text(const StageSlice& slice) {
  if (slice.num_layers == 0) return "no layers";
  return fmt::format("layers {}..{}", slice.first_layer, slice.first_layer + slice.num_layers - 1);
}

std::vector<StageSlice> slice_as_given(const std::vector<int>& layers) {
  std::vector<StageSlice> slices;
  int first = 0;
  for (const int count : layers) {
    slices.push_back({first, count, slices.empty(), slices.size() + 1 == layers.size()});
    first += count;
  }
  return slices;
}

std::vector<StageSlice> slice_evenly(int layers, int stages, int ends) {
  std::vector<int> counts(stages, (layers + 2 * ends) / stages);
  counts.front() -= ends;
  counts.back() -= ends;
  return slice_as_given(counts);
}

std::vector<StageSlice> slices_of(const Model& model, const TrainingPlan& plan,
                                  std::int64_t sequence_length) {
  if (!plan.layers.empty()) return slice_as_given(plan.layers);
  const StagePlacement placement(plan);
  if (plan.slicing == Slicing::kEven) return slice_evenly(model.layers, placement.stages(), 0);
  if (plan.slicing == Slicing::kEvenWithEnds) return slice_evenly(model.layers, placement.stages(), 1);
  return slice_balanced(model, sequence_length, placement.stages(),
                        speeds_of_stages(placement, plan.stage_speeds));
}

}  // namespace moebius
