#include "workloads/schedule/work.h"

#include <vector>

#include "models/layer_math.h"
#include "workloads/schedule/context_part.h"

namespace moebius {

namespace {

std::int64_t rows_to_others(const Route& route, int member, bool from_member) {
  const std::int64_t all = from_member ? route.sent_tokens(member) : route.received_tokens(member);
  return all - route.tokens_between(member, member);
}

// Copies by expert that leave the member with its tokens, or its experts' results.
double copies_to_others(const Route& route, int member, bool from_member) {
  const auto copies = [&](int from, int to) {
    const int tokens = route.received_tokens(to);
    return tokens > 0 ? static_cast<double>(route.tokens_between(from, to)) * route.rows_of_rank(to) / tokens
                      : 0;
  };
  if (!from_member) return route.rows_of_rank(member) - copies(member, member);
  double sum = 0;
  for (int to = 0; to < route.spec().ranks; ++to)
    if (to != member) sum += copies(member, to);
  return sum;
}

double gathered_tokens(const Route& route) {
  return static_cast<double>(route.spec().tokens) * route.spec().ranks;
}

// Their work is no line in the lengths: a sequence of the mean one says nothing of a batch.
bool goes_by_length(OpKind kind) {
  return is_any_attention(kind) || kind == OpKind::kTopKeys || kind == OpKind::kDeltaRule;
}

}  // namespace

std::vector<int> members_of_class(const Layout& layout, std::int32_t rank_class) {
  const Group& group = layout.classes[rank_class].group(GroupRole::kExpert);
  std::vector<int> members;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    if (layout.class_of_rank[group.ranks[i]] == rank_class) members.push_back(static_cast<int>(i));
  }
  if (members.empty()) members.push_back(0);  // in no expert group: a route of one rank
  return members;
}

bool has_member_rows(const Op& op) {
  const bool sees_own_tokens = op.kind == OpKind::kGate || op.kind == OpKind::kGateGrad;
  return op.route >= 0 && !is_communication(op.kind) && !sees_own_tokens;
}

Shape member_shape(const Op& op, const Fragment& fragment, int member) {
  Shape shape = op.shape;
  if (!has_member_rows(op)) return shape;
  const std::int64_t rows = fragment.routes[op.route]->rows_of_rank(member);
  (op.kind == OpKind::kGroupedGemmWgrad ? shape.k : shape.m) = rows;
  return shape;
}

double sent_bytes(const Op& op, const Fragment& fragment, int group_size, int member) {
  if (!is_communication(op.kind) || op.kind == OpKind::kRecv) return 0;
  if (is_host_copy(op.kind)) return 0;  // nothing to other ranks
  if (op.kind == OpKind::kSend) return op.payload.value;
  if (op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine) {
    const Route& route = *fragment.routes[op.route];
    return op.payload.value *
           static_cast<double>(rows_to_others(route, member, op.kind == OpKind::kDispatch));
  }
  if (is_ring_shift(op)) return group_size > 1 ? op.payload.value : 0;
  if (op.kind == OpKind::kAllToAll && fragment.pair_bytes) return fragment.pair_bytes->sent(member);
  const double others = group_size > 0 ? (group_size - 1.0) / group_size : 0;
  return op.payload.value * others * (op.kind == OpKind::kAllReduce ? 2 : 1);
}

double carried_bytes(const Op& op, const Fragment& fragment, int group_size, int member) {
  const bool routed = op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine;
  if (!routed || group_size < 2) return sent_bytes(op, fragment, group_size, member);
  const Route& route = *fragment.routes[op.route];
  if (op.algorithm == Algorithm::kDirect || op.algorithm == Algorithm::kLibrary)
    return op.payload.value * copies_to_others(route, member, op.kind == OpKind::kDispatch);
  if (op.algorithm == Algorithm::kRing)  // as of a gather and of a reduce-scatter
    return op.payload.value * gathered_tokens(route) * (group_size - 1) / group_size;
  return sent_bytes(op, fragment, group_size, member);
}

Flops op_flops(const Op& op, const Fragment& fragment) {
  if (!goes_by_length(op.kind) || op.batch < 0) return op_flops(op.kind, op.shape);
  Shape one = op.shape;
  one.groups = 1;
  Flops sum = {};
  for (const BatchSequence& sequence : fragment.batches[op.batch]->sequences) {
    one.m = sequence.count;
    one.kv = sequence.length();
    sum += op_flops(op.kind, one);
  }
  return sum;
}

ClassWork class_work(const Op& op, const Fragment& fragment, const Layout& layout, std::int32_t rank_class) {
  const RankClass& ranks = layout.classes[rank_class];
  const int group_size = static_cast<int>(ranks.group(op.group).ranks.size());
  const bool differ = op.route >= 0 && (has_member_rows(op) || is_communication(op.kind));
  if (!differ) {
    return {ranks.size() * op_flops(op, fragment).value,
            ranks.size() * carried_bytes(op, fragment, group_size, ranks.group(op.group).my_index)};
  }
  const std::vector<int> members = members_of_class(layout, rank_class);
  ClassWork sum;
  for (const int member : members) {
    sum.flops += op_flops(op.kind, member_shape(op, fragment, member)).value;
    sum.sent += carried_bytes(op, fragment, group_size, member);
  }
  const double ranks_per_member = static_cast<double>(ranks.size()) / static_cast<double>(members.size());
  return {sum.flops * ranks_per_member, sum.sent * ranks_per_member};
}

}  // namespace moebius
