// Device memory of a class over the steps of a run. Where experts are chosen anew in each step or microbatch,
// the fullest moment is anywhere in the run: fragments are lowered once, and what differs, the rows of
// experts, is taken from each step's routes.
#pragma once

#include <vector>

#include "workloads/training/layers/stage_fragments.h"
#include "workloads/training/state/memory.h"

namespace moebius {

struct ClassRun {
  int rank = 0;  // of the pipeline
  ShardPosition shard;
  const std::vector<Pass>* passes = nullptr;  // of one step
  std::vector<int> members;                   // as of memory_of_passes()
};

// That of the fullest step; `after_pass` of all steps where they differ.
ClassMemory memory_of_run(FragmentStore& store, const TrainingWorkload& work, const ClassRun& run);

}  // namespace moebius
