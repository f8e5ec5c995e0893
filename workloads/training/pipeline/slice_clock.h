// How long a step takes with given slices: the schedule's passes on a clock, without messages.
#pragma once

#include <vector>

#include "workloads/training/pipeline/slice_search.h"

namespace moebius {

// Seconds. Of a stage's seconds a third is its forward pass, two thirds its backward pass, one of them the
// gradients of its inputs where that is in two parts. Of many microbatches a few for each rank are laid out;
// from there each takes as long as the last of them. `layers`: of each stage.
double step_seconds(const SliceLoads& loads, const PipelineSpec& spec, const StagePlacement& placement,
                    const std::vector<int>& layers);

// Moves single layers from the busiest ranks to other stages for as long as that shortens the step.
std::vector<int> with_layers_moved(const SliceLoads& loads, const PipelineSpec& spec,
                                   const StagePlacement& placement, std::vector<int> layers);

}  // namespace moebius
