// Ranks, classes and groups of a training plan. The order of ranks is tensor, context, data, pipeline,
// fastest first; ranks that share experts are runs of consecutive ranks of a stage, in it those that share
// each expert, so whatever the degrees of attention are (MoE parallel folding, arXiv 2504.14960).
#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/training/pipeline/columns.h"
#include "workloads/training/pipeline/pipeline.h"
#include "workloads/training/plan.h"

namespace moebius {
namespace {

// `count` ranks from `first`, `stride` apart.
std::vector<std::int32_t> strided(int first, int count, int stride) {
  std::vector<std::int32_t> ranks(count);
  for (int i = 0; i < count; ++i) ranks[i] = first + i * stride;
  return ranks;
}

Group group_of(const std::vector<std::int32_t>& ranks, int rank) {
  Group group;
  group.ranks = ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == rank) group.my_index = static_cast<std::int32_t>(i);
  }
  return group;
}

// Members in one class each when unfolded; when folded, members of one stage and kind of column are of one
// class.
void count_classes(RankClass& rank_class, const std::vector<std::int32_t>& class_of_rank) {
  for (Group& group : rank_class.groups) {
    std::vector<std::int32_t> classes;
    for (const std::int32_t rank : group.ranks) classes.push_back(class_of_rank[rank]);
    std::sort(classes.begin(), classes.end());
    group.num_classes =
        static_cast<std::int32_t>(std::unique(classes.begin(), classes.end()) - classes.begin());
  }
}

// Of a stage that two ranks hold, the replicas of both: those of the lower rank first.
std::vector<std::int32_t> with_mirror(const std::vector<std::int32_t>& ranks, int distance) {
  std::vector<std::int32_t> both = ranks;
  for (const std::int32_t rank : ranks) both.push_back(rank + distance);
  std::sort(both.begin(), both.end());
  return both;
}

void add_groups(RankClass& rank_class, const TrainingPlan& plan) {
  const int rank = rank_class.representative();
  const int stage_size = plan.tp * plan.cp * plan.dp;
  const int stage = rank / stage_size;
  const int local = rank % stage_size;
  const int base = stage * stage_size;
  const auto set = [&](GroupRole role, const std::vector<std::int32_t>& ranks) {
    rank_class.groups[static_cast<int>(role)] = group_of(ranks, rank);
  };
  set(GroupRole::kTensor, strided(base + local / plan.tp * plan.tp, plan.tp, 1));
  const int context_block = plan.tp * plan.cp;
  set(GroupRole::kContext,
      strided(base + local / context_block * context_block + local % plan.tp, plan.cp, plan.tp));
  const int expert_block = plan.expert_ranks(), expert_tp = plan.expert_tp;
  set(GroupRole::kExpert,
      strided(base + local / expert_block * expert_block + local % expert_tp, plan.ep, expert_tp));
  if (expert_tp > 1)
    set(GroupRole::kExpertTensor, strided(base + local / expert_tp * expert_tp, expert_tp, 1));
  const StagePlacement placement(plan);
  const std::vector<std::int32_t> data = strided(base + local % plan.tp, plan.cp * plan.dp, plan.tp);
  const std::vector<std::int32_t> experts =
      strided(base + local % expert_block, stage_size / expert_block, expert_block);
  if (placement.both_ways()) {
    const int mirror = (plan.pp - 1 - 2 * stage) * stage_size;
    set(GroupRole::kBatch, data);
    set(GroupRole::kData, with_mirror(data, mirror));
    set(GroupRole::kExpertData, with_mirror(experts, mirror));
  } else {
    set(GroupRole::kData, data);
    set(GroupRole::kExpertData, experts);
  }
  if (plan.mixed_tp()) {
    const int degree = plan.dense_degree();
    const std::vector<std::int32_t> same = strided(base + local % degree, stage_size / degree, degree);
    set(GroupRole::kDenseTensor, strided(base + local / degree * degree, degree, 1));
    set(GroupRole::kDenseData,
        placement.both_ways() ? with_mirror(same, (plan.pp - 1 - 2 * stage) * stage_size) : same);
  }
  // Hybrid sharding: neighbours share a copy, ranks at the same place in their copies hold the same shard.
  const auto cut = [&](GroupRole of, GroupRole shard, GroupRole replica) {
    const Group all = rank_class.group(of);
    const int members = std::min<int>(plan.shard, static_cast<int>(all.ranks.size()));
    const auto at = all.ranks.begin();
    set(shard, {at + all.my_index / members * members, at + (all.my_index / members + 1) * members});
    std::vector<std::int32_t> same;
    for (std::size_t i = all.my_index % members; i < all.ranks.size(); i += members) same.push_back(at[i]);
    set(replica, same);
  };
  if (plan.zero > 0 && plan.shard > 0) {
    cut(GroupRole::kData, GroupRole::kShard, GroupRole::kReplica);
    cut(GroupRole::kExpertData, GroupRole::kExpertShard, GroupRole::kExpertReplica);
  }
  const auto cut_again = [&](GroupRole of, GroupRole shard, GroupRole part) {
    const Group& all = rank_class.group(plan.shard > 0 ? shard : of);
    if (static_cast<int>(all.ranks.size()) <= plan.regather) return;
    const auto at = all.ranks.begin() + all.my_index / plan.regather * plan.regather;
    set(part, std::vector<std::int32_t>(at, at + plan.regather));
  };
  if (plan.keeps_gathered() && plan.regather > 1) {
    cut_again(GroupRole::kData, GroupRole::kShard, GroupRole::kRegather);
    cut_again(GroupRole::kExpertData, GroupRole::kExpertShard, GroupRole::kExpertRegather);
  }
  const int last = (plan.pp - 1) * stage_size + local;
  if (stage + 1 < plan.pp) set(GroupRole::kNext, {rank, rank + stage_size});
  if (stage > 0) set(GroupRole::kPrevious, {rank - stage_size, rank});
  if (plan.schedule == PipelineKind::kInterleaved) {  // round after round
    if (stage + 1 == plan.pp) set(GroupRole::kNext, {local, last});
    if (stage == 0) set(GroupRole::kPrevious, {local, last});
  }
  if (placement.ends_apart() && (stage == 0 || stage == plan.pp - 1)) set(GroupRole::kTied, {local, last});
  if (plan.clip > 0) set(GroupRole::kWorld, strided(0, plan.ranks(), 1));
  if (plan.keeps_history()) {
    const int members = plan.history_of_tensor_ranks ? context_block : stage_size;
    set(GroupRole::kScales, strided(base + local / members * members, members, 1));
  }
}

}  // namespace

Layout make_layout(const TrainingPlan& plan) {
  return make_layout(plan, {});
}

Layout make_layout(const TrainingPlan& plan, const std::vector<std::int32_t>& column_kinds) {
  Layout layout;
  layout.ranks = plan.ranks();
  const int stage_size = layout.ranks / plan.pp;
  CHECK(stage_size % plan.expert_ranks() == 0,
        fmt::format("experts on {} of {} ranks of a stage", plan.expert_ranks(), stage_size));
  CHECK(stage_size % plan.dense_degree() == 0,
        fmt::format("dense tp {} on {} ranks of a stage", plan.dense_degree(), stage_size));
  const int kinds =
      column_kinds.empty() ? 1 : 1 + *std::max_element(column_kinds.begin(), column_kinds.end());
  layout.classes.resize(plan.fold ? plan.pp * kinds : layout.ranks);
  for (int rank = 0; rank < layout.ranks; ++rank) {
    const int kind = column_kinds.empty() ? 0 : column_kinds[rank % stage_size / ranks_of_column(plan)];
    layout.class_of_rank.push_back(plan.fold ? rank / stage_size * kinds + kind : rank);
    layout.device_of_rank.push_back(rank);
    layout.classes[layout.class_of_rank.back()].ranks.push_back(rank);
  }
  for (RankClass& rank_class : layout.classes) {
    add_groups(rank_class, plan);
    count_classes(rank_class, layout.class_of_rank);
  }
  return layout;
}

std::string kernels_apart(const TrainingPlan& plan) {
  std::string text;
  const auto add = [&](bool separate, const char* name) {
    if (separate) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(plan.attention == AttentionKernels::kUnfused, "attention");
  add(plan.loss != LossKernels::kFused, "loss");
  add(plan.eager_elementwise, "elementwise operations");
  add(plan.separate_norm_grad, "gradients of norms");
  add(plan.biases != BiasKernels::kFused, "biases");
  add(plan.separate_accumulation, "sums of gradients");
  add(plan.separate_update, "update");
  add(plan.separate_routing, "routing");
  add(plan.expert_by_expert, "products of experts");
  return text;
}

}  // namespace moebius
