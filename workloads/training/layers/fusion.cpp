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
};

// One kernel for queries and keys and, at its end, the cache: neighbours of any order.
bool is_of_heads(OpKind kind) {
  return kind == OpKind::kSplit || kind == OpKind::kNorm || kind == OpKind::kRotary ||
         kind == OpKind::kCacheAppend;
}

// Norms before a projection are not of heads: what they read was not split.
bool are_of_heads(const Op& first, const Op& second, std::span<const Fusion> fusions) {
  return std::find(fusions.begin(), fusions.end(), Fusion::kHeads) != fusions.end() &&
         is_of_heads(first.kind) && is_of_heads(second.kind) && second.kind != OpKind::kSplit;
}

bool are_named(const Op& first, const Op& second, std::span<const Fusion> fusions) {
  return std::any_of(kNeighbours.begin(), kNeighbours.end(), [&](const Neighbours& row) {
    return row.first == first.kind && row.second == second.kind &&
           std::find(fusions.begin(), fusions.end(), row.fusion) != fusions.end();
  });
}

bool reads_from(const Fragment& fragment, const Op& reader, const Op& writer) {
  for (int i = 0; i < reader.num_inputs; ++i) {
    for (int j = 0; j < writer.num_outputs; ++j) {
      if (fragment.input(reader, i) == fragment.output(writer, j)) return true;
    }
  }
  return false;
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
    before = static_cast<std::int32_t>(i);
  }
}

}  // namespace moebius
