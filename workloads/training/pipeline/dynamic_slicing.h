// Dynamic pipeline slicing (/plan/pp/slicing "dynamic"): layers stand on stages so that time and memory
// balance.
#pragma once

#include <string>

#include "hw/cluster.h"
#include "models/model.h"
#include "workloads/training/pipeline/slice_search.h"
#include "workloads/training/pipeline/slicing.h"
#include "workloads/training/plan.h"

namespace moebius {

struct SlicingInput {
  const Model& model;
  const TrainingPlan& plan;
  const TrainingWorkload& workload;
  const Cluster& cluster;
  const Pool* only = nullptr;  // as if all ranks stood in it; null: where they do
};

// What layers take and fill, each kind of them (dense, experts) and what the ends hold (embedding; head and
// MTP modules) lowered by itself, as the plan says, for the chip of each pipeline rank: the slowest and the
// smallest where its ranks stand in several pools. Seconds by fragment_clock.h: of a forward and a backward
// pass, or of both side by side where the schedule pairs them. Microbatches alive are counted in the passes.
// Experts are taken as balanced.
SliceLoads slice_loads(const SlicingInput& input);

// What each stage takes on the slowest chip that it stands on, by the same clock: the passes of a schedule
// whose backward passes are split.
std::vector<StageSeconds> stage_seconds(const SlicingInput& input, const std::vector<StageSlice>& slices);

struct DynamicSlices {
  SliceChoice choice;
  SliceCost balanced;    // of slices by FLOPs
  std::string how = {};  // the choice was found, where not by the exact search; for people
};

DynamicSlices slice_dynamically(const SlicingInput& input);

// How often and in which company each rank's chunks keep microbatches alive: see SliceLoads::alive.
std::vector<std::vector<std::vector<int>>> alive_microbatches(const PipelineSpec& spec);

// One line: what was chosen, and what it is better than.
std::string describe(const DynamicSlices& slices);

}  // namespace moebius
