// Pipeline schedules: in which order a stage runs the forward and backward passes of its microbatches.
#pragma once

#include <vector>

#include "workloads/training/plan.h"

namespace moebius {

enum class PassKind : std::uint8_t { kForward, kBackward, kLastBackward, kOptimizer };

struct Pass {
  PassKind kind = PassKind::kForward;
  int microbatch = 0;
  bool operator==(const Pass&) const = default;
};

// The passes of one stage in one step, the optimizer last. All stages have equally many; pass i of any stage
// depends only on passes of other stages that stand before i (so that issuing row by row cannot deadlock).
std::vector<Pass> pipeline_passes(PipelineKind kind, int stage, int stages, int microbatches);

// Scoring: the forward passes alone.
std::vector<Pass> forward_passes(int microbatches);

}  // namespace moebius
