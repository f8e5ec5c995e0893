// Tensor-parallel communication beside its matrix product (plan.tp_chunks): the pass over a finished fragment
// that cuts both into pieces.
#pragma once

#include "workloads/training/builder.h"
#include "workloads/training/plan.h"

namespace moebius {

inline constexpr int kMostTensorChunks = 128;

// Freezes the fragment; with plan.tp_chunks > 0 it is written anew first. A gather over a tensor-parallel
// group and the product that reads it first (forward: into a column-cut matrix; backward: the input gradient
// of a row-cut one; with the cast to 8 bits between them), and a forward product and the reduce-scatter of
// its result become pieces: piece c takes rows [own*c/chunks, own*(c+1)/chunks) of each member's `own` rows.
// While a piece is multiplied the next one travels. A rank with fewer rows has a piece for each. The same
// bytes and FLOPs in all; what reads the whole tensor waits for the last piece. The sum of an input gradient
// stays whole: it travels beside the weight gradients, as without pieces.
FragmentPtr freeze_with_overlap(FragmentBuilder& builder, const TrainingPlan& plan);

}  // namespace moebius
