#include "workloads/collective.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

namespace {

// Elements of the whole buffer (see Op::payload), a multiple of the ranks.
std::int64_t whole_rows(const CollectiveWorkload& work) {
  const auto elements = static_cast<std::int64_t>(std::ceil(work.bytes.value / element_bytes(work.dtype)));
  return (elements + work.group_ranks() - 1) / work.group_ranks() * work.group_ranks();
}

// Rows of a member before and after.
std::pair<std::int64_t, std::int64_t> member_rows(OpKind operation, std::int64_t whole, int ranks) {
  if (operation == OpKind::kAllGather) return {whole / ranks, whole};
  if (operation == OpKind::kReduceScatter) return {whole, whole / ranks};
  return {whole, whole};
}

Tensor column(const CollectiveWorkload& work, std::int64_t rows) {
  return {.dtype = work.dtype, .role = Role::kCollective, .rows = rows, .columns = 1};
}

// What a rank brings is there from the start of the run.
Tensor source_column(const CollectiveWorkload& work, std::int64_t rows) {
  Tensor tensor = column(work, rows);
  tensor.scope = Scope::kRank;
  tensor.init = 1;
  return tensor;
}

FragmentPtr one_op(const CollectiveWorkload& work, Op op, const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& outputs) {
  Fragment fragment;
  fragment.name = to_string(op.kind);
  op.dtype = work.dtype;
  op.role = Role::kCollective;
  op.algorithm = work.algorithm;
  op.units = static_cast<std::int16_t>(work.channels);
  op.payload = work.bytes;
  op.num_inputs = static_cast<std::uint8_t>(inputs.size());
  op.num_outputs = static_cast<std::uint8_t>(outputs.size());
  op.shape.m = (inputs.empty() ? outputs : inputs).front().rows;
  op.shape.n = 1;
  fragment.tensors = inputs;
  fragment.tensors.insert(fragment.tensors.end(), outputs.begin(), outputs.end());
  fragment.operands.resize(fragment.tensors.size());
  std::iota(fragment.operands.begin(), fragment.operands.end(), 0);
  fragment.pair_bytes = work.matrix;
  fragment.ops = {op};
  return freeze(std::move(fragment));
}

// What the busiest ranks hold: all ranks have columns of one size.
FragmentPtr exchange_fragment(const CollectiveWorkload& work) {
  const auto rows = [&](double bytes) {
    return std::max<std::int64_t>(1, std::llround(std::ceil(bytes / element_bytes(work.dtype))));
  };
  return one_op(work, {.kind = work.operation, .lane = Lane::kDataComm, .group = GroupRole::kWorld},
                {source_column(work, rows(work.matrix->largest_before()))},
                {column(work, rows(work.matrix->largest_after()))});
}

FragmentPtr send_fragment(const CollectiveWorkload& work) {
  return one_op(work, {.kind = OpKind::kSend, .lane = Lane::kSendForward, .group = GroupRole::kNext},
                {source_column(work, whole_rows(work))}, {});
}

FragmentPtr receive_fragment(const CollectiveWorkload& work) {
  return one_op(work, {.kind = OpKind::kRecv, .lane = Lane::kRecvForward, .group = GroupRole::kPrevious}, {},
                {column(work, whole_rows(work))});
}

using Groups = std::vector<std::vector<std::int32_t>>;

std::vector<std::int32_t> pools_of(int ranks, const std::vector<int>& pool_devices) {
  std::vector<std::int32_t> pools(ranks);
  int pool = 0, end = pool_devices.empty() ? ranks : pool_devices.front();
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == end) end += pool_devices[++pool];
    pools[rank] = pool;
  }
  return pools;
}

// Equal for groups that stand alike: pool and region of each member, and its leaf and pod as they are first
// met.
std::vector<std::int32_t> standing_of(const std::vector<std::int32_t>& group,
                                      const std::vector<std::int32_t>& pools, const Fabric* fabric) {
  std::vector<std::int32_t> standing;
  std::map<std::pair<int, int>, std::int32_t> numbers;  // of leaves, and of pods
  const auto add = [&](int tier, int place) {
    const auto next = static_cast<std::int32_t>(numbers.size());
    standing.push_back(numbers.try_emplace({tier, place}, next).first->second);
  };
  for (const std::int32_t rank : group) {
    standing.push_back(pools[rank]);
    if (fabric == nullptr) continue;
    const Fabric::Standing at = fabric->standing(rank);
    standing.push_back(at.region);
    add(0, at.leaf);
    add(1, at.pod);
  }
  return standing;
}

// By rank: its own class, or that of its pool and of the groups that stand as its own does.
std::vector<std::int32_t> classes_of(const CollectiveWorkload& work, const Groups& groups, bool fold,
                                     const CollectivePlace& place) {
  std::vector<std::int32_t> classes(work.ranks);
  if (!fold) {
    std::iota(classes.begin(), classes.end(), 0);
    return classes;
  }
  const std::vector<std::int32_t> pools = pools_of(work.ranks, place.pool_devices);
  std::map<std::vector<std::int32_t>, std::int32_t> kinds;
  std::vector<std::int32_t> kind_of_rank(work.ranks);
  for (const auto& group : groups) {
    const auto next = static_cast<std::int32_t>(kinds.size());
    auto standing = standing_of(group, pools, groups.size() > 1 ? place.fabric : nullptr);
    const std::int32_t kind = kinds.try_emplace(std::move(standing), next).first->second;
    for (const std::int32_t rank : group) kind_of_rank[rank] = kind;
  }
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> numbers;  // of pool and kind
  for (int rank = 0; rank < work.ranks; ++rank) {
    const auto next = static_cast<std::int32_t>(numbers.size());
    classes[rank] = numbers.try_emplace({pools[rank], kind_of_rank[rank]}, next).first->second;
  }
  return classes;
}

// The ranks stand on the first devices, in order.
Layout placed(const std::vector<std::int32_t>& class_of_rank) {
  Layout layout;
  layout.ranks = static_cast<std::int32_t>(class_of_rank.size());
  layout.classes.resize(*std::max_element(class_of_rank.begin(), class_of_rank.end()) + 1);
  layout.device_of_rank.resize(layout.ranks);
  std::iota(layout.device_of_rank.begin(), layout.device_of_rank.end(), 0);
  layout.class_of_rank = class_of_rank;
  for (int rank = 0; rank < layout.ranks; ++rank) {
    layout.classes[class_of_rank[rank]].ranks.push_back(rank);
  }
  return layout;
}

// A group has every groups-th node, so that its nodes stand as far apart as the ranks do.
std::vector<std::vector<std::int32_t>> groups_of(const CollectiveWorkload& work, int ranks_per_node) {
  std::vector<std::vector<std::int32_t>> groups(work.groups);
  const int side_by_side = work.groups > 1 ? ranks_per_node : work.ranks;
  for (int rank = 0; rank < work.ranks; ++rank) groups[rank / side_by_side % work.groups].push_back(rank);
  return groups;
}

void join(Layout& layout, const std::vector<std::int32_t>& ranks, bool pair) {
  std::set<std::int32_t> classes;
  for (const std::int32_t rank : ranks) classes.insert(layout.class_of_rank[rank]);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RankClass& of = layout.classes[layout.class_of_rank[ranks[i]]];
    if (of.representative() != ranks[i]) continue;
    const GroupRole role = !pair ? GroupRole::kWorld : i == 0 ? GroupRole::kNext : GroupRole::kPrevious;
    of.groups[static_cast<int>(role)] = {.ranks = ranks,
                                         .my_index = static_cast<std::int32_t>(i),
                                         .num_classes = static_cast<std::int32_t>(classes.size())};
  }
}

}  // namespace

FragmentPtr collective_fragment(const CollectiveWorkload& work, int queue) {
  if (work.matrix) return exchange_fragment(work);
  const auto [before, after] = member_rows(work.operation, whole_rows(work), work.group_ranks());
  Op op{.kind = work.operation, .lane = Lane::kDataComm, .group = GroupRole::kWorld};
  op.queue = static_cast<std::uint8_t>(queue);
  return one_op(work, op, {source_column(work, before)}, {column(work, after)});
}

std::pair<FragmentPtr, FragmentPtr> message_fragments(const CollectiveWorkload& work) {
  return {send_fragment(work), receive_fragment(work)};
}

CollectiveRun::CollectiveRun(const CollectiveWorkload& work, const CollectivePlace& place) {
  CHECK(work.ranks > 1 && work.bytes.value > 0,
        fmt::format("{} ranks, {} bytes", work.ranks, work.bytes.value));
  const bool pair = work.operation == OpKind::kSend;
  CHECK(!pair || work.ranks == 2, fmt::format("a message between {} ranks", work.ranks));
  const bool fold = work.fold && !pair && !work.matrix;
  const Groups groups = groups_of(work, place.ranks_per_node);
  layout_ = placed(classes_of(work, groups, fold, place));
  for (const std::vector<std::int32_t>& group : groups) join(layout_, group, pair);
  if (pair) {
    fragments_ = {send_fragment(work), receive_fragment(work)};
  } else {
    fragments_.assign(layout_.classes.size(), collective_fragment(work));
  }
}

std::optional<Submission> CollectiveRun::next(Time) {
  if (issued_ == num_classes()) return std::nullopt;
  const std::int32_t i = issued_++;
  return Submission{.fragment = fragments_[i], .sequence = i, .rank_class = i, .after = {}};
}

}  // namespace moebius
