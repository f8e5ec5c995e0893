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
  return kind == OpKind::kSplit || kind == OpKind::kRowMeans || kind == OpKind::kNorm ||
         kind == OpKind::kRotary || kind == OpKind::kCacheAppend;
}

bool are_named(const Op& first, const Op& second, std::span<const Fusion> fusions) {
  return std::any_of(kNeighbours.begin(), kNeighbours.end(), [&](const Neighbours& row) {
    return row.first == first.kind && row.second == second.kind && has(fusions, row.fusion);
  });
}

// `waits`: for how many ops the lane has not waited for.
bool joins_reduction(const Fragment& fragment, const Op& op, int waits, std::span<const Fusion> fusions) {
  if (!has(fusions, Fusion::kReduced) || op.kind != OpKind::kAdd || waits != 1) return false;
  const Op* reduction = reduction_read(fragment, op);
  return reduction != nullptr && reduction->payload.value <= kMostReduced;
}

// Goes along the compute lane, from each op to the next.
class Fuser {
 public:
  Fuser(const Fragment& fragment, std::span<const Fusion> fusions) : fragment_(fragment), fusions_(fusions) {}

  // `first` is the op that was passed last.
  bool are_one(const Op& first, const Op& second) const {
    return (are_named(first, second, fusions_) && reads_from(fragment_, second, first)) ||
           are_of_heads(first, second) || quantises_reduced(first, second) || are_of_latents(first, second);
  }

  void pass(const Op& op, bool in_reduction) {
    reduced_ = in_reduction || (reduced_ && op.fused && op.kind == OpKind::kNorm);
    rotated_ = (rotated_ && !is_attention(op.kind)) || op.kind == OpKind::kRotary;
  }

 private:
  // Norms before a projection are not of heads: what they read was not split. Apart from the rotation, norms
  // of queries and of keys are one kernel, and so are both rotations: the first begins it.
  bool are_of_heads(const Op& first, const Op& second) const {
    if (!has(fusions_, Fusion::kHeads) || !is_of_heads(first.kind) || !is_of_heads(second.kind)) return false;
    if (second.kind == OpKind::kSplit) return false;
    if (second.kind == OpKind::kCacheAppend) return has(fusions_, Fusion::kAppend);
    const bool begins = second.kind == OpKind::kRotary && first.kind == OpKind::kNorm && !rotated_;
    return !begins || has(fusions_, Fusion::kHeadNorms);
  }

  // In 4 bits; no library's reduction finds scales of 8-bit blocks.
  bool quantises_reduced(const Op& first, const Op& second) const {
    return has(fusions_, Fusion::kReducedOperand) && reduced_ && first.kind == OpKind::kNorm &&
           second.kind == OpKind::kQuantise && second.dtype == DType::kFp4 &&
           reads_from(fragment_, second, first);
  }

  bool are_of_latents(const Op& first, const Op& second) const {
    return has(fusions_, Fusion::kLatents) && first.kind == OpKind::kGemm && second.kind == OpKind::kGemm &&
           first.role == Role::kQA && second.role == Role::kKvA && first.dtype == second.dtype &&
           fragment_.input(first, 0) == fragment_.input(second, 0);
  }

  const Fragment& fragment_;
  std::span<const Fusion> fusions_;
  bool reduced_ = false;  // the op that was passed last is part of a reduction
  bool rotated_ = false;  // queries or keys of the attention to come
};

}  // namespace

void fuse(Fragment& fragment, std::span<const Fusion> fusions) {
  if (fusions.empty()) return;
  std::vector<bool> is_waited_for(
      fragment.ops.size());  // by another lane: dependencies within one are not listed
  for (const std::int32_t op : fragment.dependencies) is_waited_for[op] = true;
  std::vector<bool> waited(fragment.ops.size());  // by the compute lane
  const auto count_waits = [&](const Op& op) {
    int count = 0;
    for (int i = 0; i < op.num_dependencies; ++i) {
      const std::int32_t of = fragment.dependencies[op.first_dependency + i];
      count += waited[of] ? 0 : 1;
      waited[of] = true;
    }
    return count;
  };
  Fuser fuser(fragment, fusions);
  std::int32_t before = -1;
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    Op& op = fragment.ops[i];
    if (op.lane != Lane::kCompute || is_communication(op.kind)) continue;
    const int waits = count_waits(op);
    const bool follows = before >= 0 && waits == 0 && !is_waited_for[before];
    const bool in_reduction = joins_reduction(fragment, op, waits, fusions);
    op.fused = in_reduction || (follows && fuser.are_one(fragment.ops[before], op));
    fuser.pass(op, in_reduction);
    before = static_cast<std::int32_t>(i);
  }
}

}  // namespace moebius
