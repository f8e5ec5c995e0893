#include "sim/op_costs.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

// Which field of the shape counts the rows that the route sends to a member.
enum class RowsField { kNone, kM, kK };

RowsField rows_field(OpKind kind) {
  switch (kind) {
    case OpKind::kGroupedGemmWgrad:
      return RowsField::kK;
    case OpKind::kGate:  // the route gives the experts, the rows are the member's own tokens
    case OpKind::kGateGrad:
    case OpKind::kInput:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
    case OpKind::kCrossEntropyStats:
    case OpKind::kCrossEntropy:
    case OpKind::kAdam:
    case OpKind::kDispatch:
    case OpKind::kCombine:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
      return RowsField::kNone;
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kNorm:
    case OpKind::kNormGrad:
    case OpKind::kActivation:
    case OpKind::kActivationGrad:
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
    case OpKind::kAdd:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
      return RowsField::kM;
  }
  return RowsField::kNone;
}

bool is_grouped(OpKind kind) {
  return kind == OpKind::kGroupedGemm || kind == OpKind::kGroupedGemmDgrad ||
         kind == OpKind::kGroupedGemmWgrad;
}

}  // namespace

bool has_member_loads(const Op& op) {
  return op.route >= 0 && rows_field(op.kind) != RowsField::kNone;
}

const OpCost& OpCosts::at(std::int32_t index, int cores) {
  std::vector<AtCores>& known = costs_[index];
  for (const AtCores& entry : known) {
    if (entry.cores == cores) return *entry.cost;
  }
  storage_.push_back(evaluate(fragment_.ops[index], cores));
  known.push_back({cores, &storage_.back()});
  return storage_.back();
}

OpCost OpCosts::evaluate(const Op& op, int cores) const {
  if (has_member_loads(op)) return slowest_member(op, cores);
  const Cost cost = source_.cost({op.kind, op.shape, op.dtype, cores, {}});
  return {cost.seconds, cost.memory_bytes, 1, 1, cost.origin, cost.error, 0};
}

// A member that received no token still launches its kernel.
Cost OpCosts::member_cost(const Op& op, int member, CostQuery query) const {
  const std::int64_t rows = fragment_.routes[op.route]->rows_of_rank(member);
  if (rows == 0) return {accelerator_.kernel_floor.seconds(), Origin::kRoofline, 0, 0};
  (rows_field(op.kind) == RowsField::kK ? query.shape.k : query.shape.m) = rows;
  return source_.cost(query);
}

OpCost OpCosts::slowest_member(const Op& op, int cores) const {
  const Route& route = *fragment_.routes[op.route];
  CHECK(!members_.empty(), "an op with a route in a class without an expert group");
  OpCost slowest;
  double least = 0, sum = 0;
  Cost cost;
  std::vector<std::int32_t> rows, last_rows;
  for (const std::int32_t member : members_) {
    rows.clear();
    for (int expert = 0; expert < route.experts_per_rank(); ++expert)
      rows.push_back(route.rows(member, expert));
    if (rows != last_rows) {
      CostQuery query{op.kind, op.shape, op.dtype, cores, {}};
      if (is_grouped(op.kind)) query.rows = rows;
      cost = member_cost(op, member, query);
      last_rows = rows;
    }
    const bool is_first = member == members_.front();
    if (is_first || cost.seconds > slowest.seconds) {
      slowest = {
          cost.seconds, cost.memory_bytes, 1, 1, cost.origin, cost.error, static_cast<std::int16_t>(member)};
    }
    least = is_first ? cost.seconds : std::min(least, cost.seconds);
    sum += cost.seconds;
  }
  if (least == slowest.seconds) {
    slowest.slowest = 0;
  } else {
    slowest.first = least / slowest.seconds;
    slowest.mean = sum / static_cast<double>(members_.size()) / slowest.seconds;
  }
  return slowest;
}

}  // namespace moebius
