#include "workloads/perform/group_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hw/error.h"
#include "workloads/schedule/work.h"

namespace moebius {

bool GroupBytes::agree() const {
  // Sums of many doubles: a byte in a billion, or half a byte.
  return std::abs(scheduled - moved) <= std::max(0.5, 1e-9 * scheduled);
}

GroupBytes& GroupLedger::row(const Op& op, std::int32_t rank_class) {
  const Group& group = layout_.classes[rank_class].group(op.group);
  const Key key{op.group, group.ranks, op.kind};
  GroupBytes& row = rows_[key];
  row.role = op.group;
  row.ranks = group.ranks;
  row.kind = op.kind;
  return row;
}

namespace {

// Of a collective alone executors move whole elements, as many to each member, which may be a few more than
// the bytes that were asked for: its tensors have them.
Op as_executed(Op op, const Fragment& fragment) {
  if (op.role != Role::kCollective) return op;
  for (int i = 0; i < op.num_inputs + op.num_outputs; ++i) {
    const Tensor& tensor = fragment.tensors[fragment.operands[op.first_tensor + i]];
    op.payload = std::max(op.payload, tensor.bytes());
  }
  return op;
}

}  // namespace

void GroupLedger::scheduled(const Submission& submission) {
  const Fragment& fragment = *submission.fragment;
  for (const Op& op : fragment.ops) {
    if (!is_communication(op.kind)) continue;
    const Group& group = layout_.classes[submission.rank_class].group(op.group);
    const int size = std::max<int>(1, static_cast<int>(group.ranks.size()));
    GroupBytes& entry = row(op, submission.rank_class);
    ++entry.ops;
    entry.scheduled += sent_bytes(as_executed(op, fragment), fragment, size, group.my_index);
  }
  submissions_.emplace(submission.sequence, submission);
}

void GroupLedger::moved(std::int32_t sequence, std::int32_t op, std::int32_t rank, double bytes) {
  const auto found = submissions_.find(sequence);
  CHECK(found != submissions_.end(), fmt::format("sequence={} was not scheduled", sequence));
  row(found->second.fragment->ops[op], layout_.class_of_rank[rank]).moved += bytes;
}

std::vector<GroupBytes> GroupLedger::rows() const {
  std::vector<GroupBytes> rows;
  for (const auto& [key, row] : rows_) rows.push_back(row);
  return rows;
}

std::string to_text(const std::vector<GroupBytes>& rows) {
  struct Sum {
    std::int64_t groups = 0, ops = 0, differ = 0;
    double scheduled = 0, moved = 0;
  };
  std::map<std::pair<GroupRole, OpKind>, Sum> sums;
  for (const GroupBytes& row : rows) {
    Sum& sum = sums[{row.role, row.kind}];
    ++sum.groups;
    sum.ops += row.ops;
    sum.differ += row.agree() ? 0 : 1;
    sum.scheduled += row.scheduled;
    sum.moved += row.moved;
  }
  std::string text = fmt::format("bytes on every group\n  {:<14} {:<16} {:>7} {:>8} {:>14} {:>14}\n", "group",
                                 "kind", "groups", "ops", "scheduled", "moved");
  for (const auto& [key, sum] : sums) {
    text += fmt::format("  {:<14} {:<16} {:>7} {:>8} {:>14.0f} {:>14.0f}  {}\n", to_string(key.first),
                        to_string(key.second), sum.groups, sum.ops, sum.scheduled, sum.moved,
                        sum.differ == 0 ? "equal" : fmt::format("{} groups differ", sum.differ));
  }
  return text;
}

}  // namespace moebius
