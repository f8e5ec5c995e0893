#include "workloads/training/state/pass_waits.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

using OpPlace = std::pair<std::int32_t, std::int32_t>;  // sequence, op
constexpr OpPlace kNone{-1, -1};

// -1: it computes nothing, as the reverse pass of a stage of which all is frozen.
std::int32_t last_compute(const Fragment& fragment) {
  auto i = static_cast<std::int32_t>(fragment.ops.size()) - 1;
  while (i >= 0 && fragment.ops[i].lane != Lane::kCompute) --i;
  return i;
}

// By key of the gradient: its last sum.
std::map<std::uint32_t, OpPlace> sums_of(const std::vector<IssuedPass>& reductions) {
  std::map<std::uint32_t, OpPlace> sums;
  for (const auto& [sequence, fragment] : reductions) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(fragment->ops.size()); ++i) {
      const Op& op = fragment->ops[i];
      for (int j = 0; op.lane == Lane::kDataComm && j < op.num_outputs; ++j) {
        const Tensor& tensor = fragment->tensors[fragment->output(op, j)];
        if (tensor.scope == Scope::kRank) sums[tensor.key] = {sequence, i};
      }
    }
  }
  return sums;
}

std::vector<Follow> waits_of_ops(const Fragment& optimizer, const std::vector<IssuedPass>& reductions,
                                 const IssuedPass& last) {
  const std::map<std::uint32_t, OpPlace> sums = sums_of(reductions);
  const std::int32_t computed = last_compute(*last.fragment);
  std::vector<Follow> follows;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(optimizer.ops.size()); ++i) {
    const Op& op = optimizer.ops[i];
    if (computed >= 0 && op.lane != Lane::kCompute && op.num_dependencies == 0)
      follows.push_back({i, last.sequence, computed});
    if (op.lane == Lane::kDataComm) continue;  // behind the sums already
    OpPlace sum = kNone;
    for (int j = 0; j < op.num_inputs; ++j) {
      const Tensor& tensor = optimizer.tensors[optimizer.input(op, j)];
      const auto found = tensor.scope == Scope::kRank ? sums.find(tensor.key) : sums.end();
      if (found != sums.end()) sum = std::max(sum, found->second);
    }
    if (sum != kNone) follows.push_back({i, sum.first, sum.second});
  }
  return follows;
}

bool is_message(Lane lane) {
  return lane == Lane::kSendForward || lane == Lane::kSendBackward || lane == Lane::kRecvForward ||
         lane == Lane::kRecvBackward;
}

std::int32_t op_count(const Fragment& fragment) {
  return static_cast<std::int32_t>(fragment.ops.size());
}

}  // namespace

void wait_for_host_copies(const IssuedPass& forward, Submission& reverse) {
  std::map<std::uint32_t, std::int32_t> copies;  // by key: the op
  for (std::int32_t i = 0; i < op_count(*forward.fragment); ++i) {
    const Op& op = forward.fragment->ops[i];
    for (int j = 0; op.kind == OpKind::kCopyToHost && j < op.num_outputs; ++j) {
      const Tensor& kept = forward.fragment->tensors[forward.fragment->output(op, j)];
      if (kept.scope == Scope::kMicrobatch) copies[kept.key] = i;
    }
  }
  for (std::int32_t i = 0; i < op_count(*reverse.fragment); ++i) {
    const Op& op = reverse.fragment->ops[i];
    if (op.kind != OpKind::kCopyFromHost) continue;
    std::int32_t last = -1;
    for (int j = 0; j < op.num_inputs; ++j) {
      const Tensor& kept = reverse.fragment->tensors[reverse.fragment->input(op, j)];
      const auto copy = kept.scope == Scope::kMicrobatch ? copies.find(kept.key) : copies.end();
      if (copy != copies.end()) last = std::max(last, copy->second);
    }
    if (last >= 0) reverse.follows.push_back({i, forward.sequence, last});
  }
}

// Lanes keep their order, so that the first op of one holds up the others.
void wait_for_ops(std::int32_t sequence, const std::vector<std::int32_t>& ops, Submission& next) {
  std::array<std::int32_t, kNumLanes> begins;
  begins.fill(-1);
  for (std::int32_t i = op_count(*next.fragment) - 1; i >= 0; --i) {
    const Lane lane = next.fragment->ops[i].lane;
    if (!is_message(lane)) begins[static_cast<int>(lane)] = i;
  }
  for (const std::int32_t before : ops) {
    for (const std::int32_t op : begins)
      if (op >= 0) next.follows.push_back({op, sequence, before});
  }
}

void wait_for_gradients(const TrainingPlan& plan, const std::vector<IssuedPass>& reductions,
                        const IssuedPass& last, Submission& optimizer) {
  if (plan.offload.of_update()) {
    optimizer.follows = waits_of_ops(*optimizer.fragment, reductions, last);
    return;
  }
  for (const IssuedPass& pass : reductions) optimizer.after.push_back(pass.sequence);
}

}  // namespace moebius
