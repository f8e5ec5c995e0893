// Weights of experts that travel between ranks beside an iteration.
#pragma once

#include <vector>

#include "workloads/schedule/pair_bytes.h"
#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// An exchange among the ranks that share experts, of these bytes between each two, on a lane of its own:
// nothing in the fragment waits for it. What is timed alone: which experts they are is not said.
void write_expert_moves(FragmentBuilder& builder, const PairBytesPtr& bytes);

// Weights that have come and wait for the end of the iteration, which still computes with those that are in
// their places.
struct ArrivedExperts {
  struct Matrix {
    TensorId come = kNoTensor, held = kNoTensor;
    int layer = 0;
  };
  std::vector<Matrix> matrices;
};

// The same exchange of the experts of a transfer, from the slots where they stand; each rank has `slots`.
ArrivedExperts write_expert_transfer(LayerWriter& writer, const ExpertTransferPtr& transfer, int slots);
// At the end of the iteration: into the slots of this rank.
void write_placing(LayerWriter& writer, const ExpertTransfer& transfer, const ArrivedExperts& arrived);

}  // namespace moebius
