// Two microbatches side by side: a forward and a backward pass of one rank in one fragment, so that the
// dispatch and combine of one travel while the other computes.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/fragment.h"

namespace moebius {

// DeepSeek-V3 technical report (arXiv 2412.19437), figure 4: attention and MLP of the two passes in turn,
//   MLP(B) MLP(W) MLP(F) attention(B) attention(W) attention(F) ...
// Both passes are cut where computing would wait for a dispatch or a combine; their pieces follow each other
// in turn, the backward pass first, and what is left of the longer one at the end. Ops and kMicrobatch
// tensors of the backward pass are those of the submission's second microbatch.
FragmentPtr overlap(const Fragment& backward, const Fragment& forward);

// The ops of a pass as pieces: all of them once, in an order in which each comes after what it waits for.
struct Pieces {
  std::vector<std::int32_t> ops;
  std::vector<std::int32_t> first;  // of each piece, into `ops`; and the number of ops at the end
  std::size_t count() const { return first.size() - 1; }
};

// Pieces of two passes in turn, those of the second `lag` pieces behind those of the first.
struct PiecedPass {
  const Fragment& pass;
  const Pieces& pieces;
};
FragmentPtr overlap(PiecedPass first, PiecedPass second, std::size_t lag);

}  // namespace moebius
