#include "workloads/training/pipeline/uneven_batches.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/mixed_pools.h"
#include "workloads/training/pipeline/columns.h"

namespace moebius {
namespace {

int pool_of(const Cluster& cluster, int device) {
  int pool = 0;
  while (device >= cluster.pools[pool].devices()) device -= cluster.pools[pool++].devices();
  return pool;
}

// The first pool that is like this one.
int kind_of(const Cluster& cluster, int pool) {
  int first = 0;
  while (!alike(cluster.pools[first], cluster.pools[pool])) ++first;
  return first;
}

double stage_seconds(const SliceLoads& loads, const StageSlice& slice, int rank) {
  const auto begin = loads.seconds[rank].begin() + slice.first_layer;
  double sum = std::accumulate(begin, begin + slice.num_layers, 0.0);
  if (slice.has_embedding) sum += loads.embedding_seconds[rank];
  if (slice.has_head) sum += loads.head_seconds[rank];
  return sum;
}

}  // namespace

int replicas_that_meet(const TrainingPlan& plan) {
  return ranks_of_column(plan) / (plan.tp * plan.cp);
}

std::vector<int> split_microbatches(const std::vector<double>& seconds, const BatchSplit& split) {
  const auto replicas = static_cast<int>(seconds.size());
  const int runs = replicas / split.together, rounds = split.microbatches / split.together;
  CHECK(replicas % split.together == 0 && split.microbatches % split.together == 0 && rounds >= runs,
        fmt::format("{} microbatches on {} replicas", split.microbatches, replicas));
  std::vector<double> slowest;
  for (int run = 0; run < runs; ++run) {
    const auto begin = seconds.begin() + run * split.together;
    slowest.push_back(*std::max_element(begin, begin + split.together));
  }
  std::vector<int> taken(runs, 1);
  for (int i = runs; i < rounds; ++i) {
    const auto end_with = [&](int run) { return (split.ahead + taken[run] + 1) * slowest[run]; };
    int first = 0;
    for (int run = 1; run < runs; ++run) {
      if (end_with(run) < end_with(first)) first = run;
    }
    ++taken[first];
  }
  std::vector<int> all;
  for (int replica = 0; replica < replicas; ++replica) all.push_back(taken[replica / split.together]);
  return all;
}

std::vector<double> replica_seconds(const SlicingInput& input, const std::vector<StageSlice>& slices) {
  const TrainingPlan& plan = input.plan;
  const StagePlacement placement(plan);
  std::map<int, SliceLoads> loads;  // by kind of pool
  std::vector<double> seconds(plan.dp, 0);
  const int stage_size = plan.ranks() / plan.pp;
  for (int replica = 0; replica < plan.dp; ++replica) {
    for (int rank = 0; rank < plan.pp; ++rank) {
      const int device = rank * stage_size + replica * plan.tp * plan.cp;
      const int kind = kind_of(input.cluster, pool_of(input.cluster, device));
      if (loads.count(kind) == 0) {
        SlicingInput on_one = input;
        on_one.only = &input.cluster.pools[kind];
        loads[kind] = slice_loads(on_one);
      }
      double sum = 0;
      for (int chunk = 0; chunk < placement.chunks(); ++chunk)
        sum += stage_seconds(loads[kind], slices[placement.stage_of(rank, chunk)], rank);
      seconds[replica] = std::max(seconds[replica], sum);
    }
  }
  return seconds;
}

std::vector<std::vector<std::int32_t>> parts_of_batch(const std::vector<int>& microbatches) {
  std::vector<std::vector<std::int32_t>> parts(microbatches.size());
  const int most = *std::max_element(microbatches.begin(), microbatches.end());
  std::int32_t next = 0;
  for (int round = 0; round < most; ++round) {
    for (std::size_t replica = 0; replica < parts.size(); ++replica) {
      if (round < microbatches[replica]) parts[replica].push_back(next++);
    }
  }
  return parts;
}

bool columns_are_mixed(const Cluster& cluster, const TrainingPlan& plan) {
  const int width = ranks_of_column(plan);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const int first = rank - rank % (plan.ranks() / plan.pp) % width;
    const int here = pool_of(cluster, rank), there = pool_of(cluster, first);
    if (!alike(cluster.pools[here], cluster.pools[there])) return true;
  }
  return false;
}

std::vector<std::int32_t> with_uneven_columns(const Cluster& cluster, const TrainingPlan& plan,
                                              std::vector<std::int32_t> kinds) {
  const int width = ranks_of_column(plan), stage_size = plan.ranks() / plan.pp;
  if (!plan.fold || stage_size % width != 0) return kinds;
  kinds.resize(stage_size / width, 0);  // none: all are alike
  std::map<std::vector<int>, std::int32_t> known;
  for (int column = 0; column < stage_size / width; ++column) {
    std::vector<int> mark{kinds[column], plan.microbatches[column * width / (plan.tp * plan.cp)]};
    for (int stage = 0; stage < plan.pp; ++stage)
      mark.push_back(kind_of(cluster, pool_of(cluster, stage * stage_size + column * width)));
    kinds[column] = known.try_emplace(mark, static_cast<std::int32_t>(known.size())).first->second;
  }
  return kinds;
}

std::string microbatches_text(const std::vector<int>& microbatches) {
  std::string text;
  for (std::size_t i = 0; i < microbatches.size();) {
    std::size_t end = i;
    while (end < microbatches.size() && microbatches[end] == microbatches[i]) ++end;
    text += fmt::format("{}{} on each of {}", text.empty() ? "" : ", ", microbatches[i], end - i);
    i = end;
  }
  return text;
}

}  // namespace moebius
