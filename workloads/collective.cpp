#include "workloads/collective.h"

#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

namespace {

// Elements of the whole buffer (see Op::payload), a multiple of the ranks.
std::int64_t whole_rows(const CollectiveWorkload& work) {
  const auto elements = static_cast<std::int64_t>(std::ceil(work.bytes.value / element_bytes(work.dtype)));
  return (elements + work.ranks - 1) / work.ranks * work.ranks;
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
  op.payload = work.bytes;
  op.num_inputs = static_cast<std::uint8_t>(inputs.size());
  op.num_outputs = static_cast<std::uint8_t>(outputs.size());
  op.shape.m = (inputs.empty() ? outputs : inputs).front().rows;
  op.shape.n = 1;
  fragment.tensors = inputs;
  fragment.tensors.insert(fragment.tensors.end(), outputs.begin(), outputs.end());
  fragment.operands.resize(fragment.tensors.size());
  std::iota(fragment.operands.begin(), fragment.operands.end(), 0);
  fragment.ops = {op};
  return freeze(std::move(fragment));
}

FragmentPtr send_fragment(const CollectiveWorkload& work) {
  return one_op(work, {.kind = OpKind::kSend, .lane = Lane::kSendForward, .group = GroupRole::kNext},
                {source_column(work, whole_rows(work))}, {});
}

FragmentPtr receive_fragment(const CollectiveWorkload& work) {
  return one_op(work, {.kind = OpKind::kRecv, .lane = Lane::kRecvForward, .group = GroupRole::kPrevious}, {},
                {column(work, whole_rows(work))});
}

// The ranks stand on the first devices, in order, and are one group.
Layout one_group(int ranks, bool fold, bool pair) {
  Layout layout;
  layout.ranks = ranks;
  layout.classes.resize(fold ? 1 : ranks);
  std::vector<std::int32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  layout.device_of_rank = all;
  for (int rank = 0; rank < ranks; ++rank) {
    layout.class_of_rank.push_back(fold ? 0 : rank);
    layout.classes[layout.class_of_rank[rank]].ranks.push_back(rank);
  }
  const auto num_classes = static_cast<std::int32_t>(layout.classes.size());
  for (std::int32_t i = 0; i < num_classes; ++i) {
    const GroupRole role = !pair ? GroupRole::kWorld : i == 0 ? GroupRole::kNext : GroupRole::kPrevious;
    layout.classes[i].groups[static_cast<int>(role)] = {
        .ranks = all, .my_index = i, .num_classes = num_classes};
  }
  return layout;
}

}  // namespace

FragmentPtr collective_fragment(const CollectiveWorkload& work, int queue) {
  const auto [before, after] = member_rows(work.operation, whole_rows(work), work.ranks);
  Op op{.kind = work.operation, .lane = Lane::kDataComm, .group = GroupRole::kWorld};
  op.queue = static_cast<std::uint8_t>(queue);
  return one_op(work, op, {source_column(work, before)}, {column(work, after)});
}

std::pair<FragmentPtr, FragmentPtr> message_fragments(const CollectiveWorkload& work) {
  return {send_fragment(work), receive_fragment(work)};
}

CollectiveRun::CollectiveRun(const CollectiveWorkload& work) {
  CHECK(work.ranks > 1 && work.bytes.value > 0,
        fmt::format("{} ranks, {} bytes", work.ranks, work.bytes.value));
  const bool pair = work.operation == OpKind::kSend;
  CHECK(!pair || work.ranks == 2, fmt::format("a message between {} ranks", work.ranks));
  layout_ = one_group(work.ranks, work.fold && !pair, pair);
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
