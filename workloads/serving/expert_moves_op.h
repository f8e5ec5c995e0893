// Weights of experts that travel between ranks beside an iteration.
#pragma once

#include "workloads/schedule/pair_bytes.h"
#include "workloads/training/layers/builder.h"

namespace moebius {

// An exchange among the ranks that share experts, of these bytes between each two, on a lane of its own:
// nothing in the fragment waits for it.
void write_expert_moves(FragmentBuilder& builder, const PairBytesPtr& bytes);

}  // namespace moebius
