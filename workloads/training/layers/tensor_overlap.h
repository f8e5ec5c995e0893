// Tensor-parallel communication beside its matrix product (plan.tp_chunks): the pass over a finished fragment
// that cuts both into pieces.
#pragma once

#include "workloads/schedule/fragment.h"

namespace moebius {

inline constexpr int kMostTensorChunks = 128;

// The fragment, before it is frozen, written anew: a gather over a tensor-parallel group and the product
// that reads it first (forward: into a column-cut matrix; backward: the input gradient of a row-cut one;
// with the cast to 8 bits between them), and a forward product and the reduce-scatter of its result (with
// the addition of another product's result between them: ParallelBlock) become `chunks` pieces: piece c
// takes rows [own*c/chunks, own*(c+1)/chunks) of each member's `own` rows
// (workloads/schedule/row_window.h). While a piece is multiplied the next one travels. A rank with fewer
// rows has a piece for each. The same bytes and FLOPs in all; what reads the whole tensor waits for the
// last piece. The sum of an input gradient stays whole: it travels beside the weight gradients, as without
// pieces. `chunks` is 1 to kMostTensorChunks.
Fragment overlap_tensor_parallel(const Fragment& fragment, int chunks);

}  // namespace moebius
