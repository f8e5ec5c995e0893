// Operator fusion as a pass over a fragment that is about to be frozen: neighbours on the compute lane become
// one kernel. The second one then reads from registers what the first one computed, and that is not written
// where nothing else reads it.
#pragma once

#include <span>
#include <vector>

#include "workloads/schedule/fragment.h"

namespace moebius {

enum class Fusion : std::uint8_t {
  kResidual,  // sums with sums and norms; the norm's gradient with the sum that it goes into
  kRotary,    // splitting of projections and norms of heads with the rotation
  kRouter,    // the router's product with the gate
  kHeads,     // all between a projection and its attention: splitting, norms of heads, rotation, the cache
};

// Marks Op::fused on ops that join the op before them in the compute lane: of the kinds that `fusions` name,
// where the second reads what the first wrote, waits for nothing of another lane, and no other lane waits for
// the first.
void fuse(Fragment& fragment, std::span<const Fusion> fusions);

}  // namespace moebius
