#include "workloads/training/layers/fusion.h"

#include <algorithm>
#include <array>

namespace moebius {
namespace {

struct Neighbours {
  Fusion fusion;
  OpKind first, second;
};

constexpr std::array kNeighbours{
    Neighbours{Fusion::kResidual, OpKind::kAdd, OpKind::kNorm},
    Neighbours{Fusion::kResidual, OpKind::kAdd, OpKind::kAdd},
    Neighbours{Fusion::kResidual, OpKind::kNormGrad, OpKind::kAdd},
    Neighbours{Fusion::kRotary, OpKind::kSplit, OpKind::kRotary},
    Neighbours{Fusion::kRotary, OpKind::kNorm, OpKind::kRotary},
    Neighbours{Fusion::kRotary, OpKind::kRotaryGrad, OpKind::kNormGrad},
    Neighbours{Fusion::kRotary, OpKind::kRotaryGrad, OpKind::kConcat},
    Neighbours{Fusion::kRouter, OpKind::kGemm, OpKind::kGate},
    Neighbours{Fusion::kOutput, OpKind::kAttention, OpKind::kQuantise},
    Neighbours{Fusion::kOutput, OpKind::kPagedAttention, OpKind::kQuantise},
};

bool has(std::span<const Fusion> fusions, Fusion fusion) {
  return std::find(fusions.begin(), fusions.end(), fusion) != fusions.end();
}

// One kernel for queries and keys and, at its end, the cache: neighbours of any order.
bool is_of_heads(OpKind kind) {
  return kind == OpKind::kSplit || kind == OpKind::kNorm || kind == OpKind::kRotary ||
         kind == OpKind::kCacheAppend;
}

// Norms before a projection are not of heads: what they read was not split.
bool are_of_heads(const Op& first, const Op& second, std::span<const Fusion> fusions) {
  return has(fusions, Fusion::kHeads) && is_of_heads(first.kind) && is_of_heads(second.kind) &&
         second.kind != OpKind::kSplit;
}

bool are_named(const Op& first, const Op& second, std::span<const Fusion> fusions) {
  return std::any_of(kNeighbours.begin(), kNeighbours.end(), [&](const Neighbours& row) {
    return row.first == first.kind && row.second == second.kind && has(fusions, row.fusion);
  });
}

bool joins_reduction(const Fragment& fragment, const Op& op, std::span<const Fusion> fusions) {
  if (!has(fusions, Fusion::kReduced) || op.kind != OpKind::kAdd || op.num_dependencies != 1) return false;
  const Op* reduction = reduction_read(fragment, op);
  return reduction != nullptr && reduction->payload.value <= kMostReduced;
}

}  // namespace

void fuse(Fragment& fragment, std::span<const Fusion> fusions) {
  if (fusions.empty()) return;
  std::vector<bool> is_waited_for(
      fragment.ops.size());  // by another lane: dependencies within one are not listed
  for (const std::int32_t op : fragment.dependencies) is_waited_for[op] = true;
  std::int32_t before = -1;
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    Op& op = fragment.ops[i];
    if (op.lane != Lane::kCompute || is_communication(op.kind)) continue;
    if (before >= 0 && op.num_dependencies == 0 && !is_waited_for[before]) {
      const Op& first = fragment.ops[before];
      op.fused = (are_named(first, op, fusions) && reads_from(fragment, op, first)) ||
                 are_of_heads(first, op, fusions);
    }
    if (joins_reduction(fragment, op, fusions)) op.fused = true;
    before = static_cast<std::int32_t>(i);
  }
}

}  // namespace moebius
