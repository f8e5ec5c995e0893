// Operator fusion as a pass over a fragment that is about to be frozen: neighbours on the compute lane become
// one kernel. The second one then reads from registers what the first one computed, and that is not written
// where nothing else reads it.
#pragma once

#include <span>
#include <vector>

#include "workloads/schedule/fragment.h"

namespace moebius {

enum class Fusion : std::uint8_t {
  kResidual,   // sums with sums and norms; the norm's gradient with the sum that it goes into
  kRotary,     // splitting of projections and norms of heads with the rotation
  kRouter,     // the router's product with the gate
  kHeads,      // between a projection and its attention: splitting with norms of heads or rotation, and each
               // of queries and keys at once
  kHeadNorms,  // of these the norms with the rotation
  kAppend,     // and the rotation with the filling of the cache
  kReduced,    // sums with the all-reduce whose result they add to: the kernel of short messages adds as it
               // sums
  kReducedOperand,  // and quantises what it norms
  kOutput,          // attention with the quantisation of its result
  kLatents,         // products of latent attention that read the same rows: one of both matrices
};

// Marks Op::fused on ops that join the op before them in the compute lane: of the kinds that `fusions` name,
// where the second reads what the first wrote, waits for nothing of another lane that the lane has not waited
// for, and no other lane waits for the first. A sum joins an all-reduce of at most kMostReduced bytes instead.
void fuse(Fragment& fragment, std::span<const Fusion> fusions);

// Beyond it libraries take over, which sum alone: 16 MB in TensorRT-LLM (CustomAllReduceHelper, two ranks),
// 2,048 tokens in SGLang (flashinfer_comm_fusion.py), 24 MB of a hidden size of 6,144.
inline constexpr double kMostReduced = 16e6;
}  // namespace moebius
