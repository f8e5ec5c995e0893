#include "workloads/study/mixed/split_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace moebius {
namespace {

constexpr int kMostStages = 64;

const Pool& pool_at(const Scenario& scenario, int pool) {
  return scenario.cluster->pools[pool];
}

int common_devices(const Scenario& scenario, const std::vector<int>& pools) {
  return std::accumulate(pools.begin(), pools.end(), 0, [&](int common, int pool) {
    return std::gcd(common, pool_at(scenario, pool).devices());
  });
}

int all_devices(const Scenario& scenario, const std::vector<int>& pools) {
  return std::accumulate(pools.begin(), pools.end(), 0,
                         [&](int sum, int pool) { return sum + pool_at(scenario, pool).devices(); });
}

bool divides_nodes(const Scenario& scenario, const std::vector<int>& pools, int tp) {
  return std::all_of(pools.begin(), pools.end(),
                     [&](int pool) { return pool_at(scenario, pool).node.accelerators % tp == 0; });
}

// The least time of the slowest stage: some stage's whole number of layers.
double slowest_stage(const std::vector<double>& seconds_of_stage, int layers) {
  double best = std::numeric_limits<double>::infinity();
  for (const double of : seconds_of_stage) {
    for (int held = 1; held <= layers; ++held) {
      const double limit = held * of;
      if (limit >= best) break;
      std::int64_t fit = 0;
      for (const double other : seconds_of_stage)
        fit += static_cast<std::int64_t>(limit / other * (1 + 1e-12));
      if (fit >= layers) best = limit;
    }
  }
  return best;
}

double pipeline_seconds(const SplitPlan& plan, const Scenario& scenario, const std::vector<double>& layer) {
  const int stage_size = all_devices(scenario, plan.order) / plan.pp;
  std::vector<double> stages;
  for (const int pool : plan.order)
    stages.insert(stages.end(), pool_at(scenario, pool).devices() / stage_size, layer[pool]);
  const double rounds =
      static_cast<double>(scenario.training.global_batch) /
      static_cast<double>(scenario.training.micro_batch * (stage_size / plan.tp / scenario.plan.cp));
  const double filling = plan.schedule == PipelineKind::kZbH1 ? 1.0 / 3 : 1.0 / plan.chunks;
  return slowest_stage(stages, scenario.model.layers) * (rounds + (plan.pp - 1) * filling);
}

double replica_seconds(const SplitPlan& plan, const Scenario& scenario, const std::vector<double>& layer) {
  const double microbatches = static_cast<double>(scenario.training.global_batch) /
                              static_cast<double>(scenario.training.micro_batch);
  double rate = 0;  // microbatches of a second
  for (const int pool : plan.order)
    rate += pool_at(scenario, pool).devices() / plan.tp / scenario.plan.cp /
            (layer[pool] * scenario.model.layers);
  double slowest = 0;
  for (const int pool : plan.order) {
    const double one = layer[pool] * scenario.model.layers;
    slowest = std::max(slowest, one * std::ceil(microbatches / rate / one - 1e-9));
  }
  return slowest;
}

}  // namespace

double layer_seconds(const EfficiencyMatrix& matrix, const Pool& pool, const Scenario& scenario, int tp) {
  const Model& model = scenario.model;
  const TrainingWorkload& work = scenario.training;
  const Accelerator& chip = pool.accelerator;
  const auto tokens = static_cast<double>(work.micro_batch * work.sequence_length / scenario.plan.cp);
  const int last = model.layers - 1;
  const double dense = layer_flops_per_token(model, last, 1, true).value;
  const double attention = layer_flops_per_token(model, last, work.sequence_length, true).value - dense;
  const bool experts = model.experts.routed > 0;
  const double width = experts ? model.experts.width * (model.experts.active + 1.0) : model.dense_width;
  const double peak = chip.peak_of(scenario.plan.gemm).value, bf16 = chip.peak_of(DType::kBf16).value;
  const double gemm = matrix.efficiency(
      fmt::format("{} {}", experts ? "expert gemms" : "gemm", to_string(scenario.plan.gemm)), width / tp);
  const double rows = scenario.plan.sequence_parallel ? tokens / tp : tokens;
  const double bytes = 3 * (10 * rows * model.hidden + 3 * tokens * width / tp) * element_bytes(DType::kBf16);
  double seconds = 3 * dense * tokens / tp / (peak * gemm);
  seconds += attention * tokens / tp / bf16 *
             (1 / matrix.efficiency("attention bf16") + 2.5 / matrix.efficiency("attention, backward bf16"));
  seconds += bytes / (chip.memory_rate.value * matrix.efficiency("norm bf16"));
  if (tp > 1) {
    const double passed = 8 * tokens * model.hidden * element_bytes(DType::kBf16) * (tp - 1) / tp;
    const double line = chip.link_rate.value > 0 ? chip.link_rate.value : chip.host_rate.value;
    seconds += passed / (line * matrix.efficiency("all-gather in a node"));
  }
  return seconds;
}

double step_estimate(const SplitPlan& plan, const Scenario& scenario, const std::vector<double>& layer) {
  return plan.by_replicas ? replica_seconds(plan, scenario, layer) : pipeline_seconds(plan, scenario, layer);
}

std::vector<SplitPlan> legal_splits(const Scenario& scenario, const std::vector<int>& pools) {
  const TrainingWorkload& work = scenario.training;
  const int common = common_devices(scenario, pools), devices = all_devices(scenario, pools);
  std::vector<SplitPlan> plans;
  for (const int tp : {1, 2, 4, 8}) {
    if (!divides_nodes(scenario, pools, tp)) continue;
    const int ranks = tp * scenario.plan.cp;  // of a replica's stage
    const auto holds_whole = [&](int pool) { return pool_at(scenario, pool).devices() % ranks == 0; };
    if (pools.size() > 1 && std::all_of(pools.begin(), pools.end(), holds_whole))
      plans.push_back({.order = pools, .tp = tp, .by_replicas = true});
    for (int stage = ranks; stage <= common; stage += ranks) {
      const int pp = devices / stage;
      if (common % stage != 0 || pp > std::min(kMostStages, scenario.model.layers)) continue;
      const std::int64_t round = work.micro_batch * (stage / ranks);
      // A part alone may take the batch that its replicas share evenly.
      if (pools.size() > 1 && work.global_batch % round != 0) continue;
      if (work.global_batch / round < pp) continue;
      plans.push_back({.order = pools, .tp = tp, .pp = pp});
      if (pp == 1) continue;
      plans.push_back({.order = pools, .tp = tp, .pp = pp, .schedule = PipelineKind::kZbH1});
      if (work.global_batch / round % pp == 0 && 2 * pp <= scenario.model.layers)
        plans.push_back(
            {.order = pools, .tp = tp, .pp = pp, .chunks = 2, .schedule = PipelineKind::kInterleaved});
    }
  }
  return plans;
}

}  // namespace moebius
