// Which layers stand on which pipeline stage.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

struct StageSlice {
  int first_layer = 0;
  int num_layers = 0;
  bool has_embedding = false;  // the first stage
  bool has_head = false;       // the last stage: final norm, MTP modules, head, loss
};

std::string layers_text(const StageSlice& slice);  // "layers 3..5"

// Contiguous slices with the smallest largest stage, by forward FLOPs of a token (embedding look-up free,
// head and MTP modules on the last stage); among those the one with the smallest sum of squares. Every stage
// holds at least one layer.
// `speeds`: of the ranks of each stage, where they differ: the largest stage is then the one that takes
// longest.
std::vector<StageSlice> slice_balanced(const Model& model, std::int64_t sequence_length, int stages,
                                       const std::vector<double>& speeds = {});

// Of each stage of the model, the slowest of the ranks that hold it; `by_rank`: of pipeline ranks. Empty for
// none.
std::vector<double> speeds_of_stages(const StagePlacement& placement, const std::vector<double>& by_rank);

// As many layers on each stage. `ends`: what embedding and head count for together with the layers of their
// stages, in layers each (0 or 1). Layers and ends must divide over the stages; an end that is all of its
// stage's share leaves no layer there.
std::vector<StageSlice> slice_evenly(int layers, int stages, int ends);

// So many layers on each stage.
std::vector<StageSlice> slice_as_given(const std::vector<int>& layers);

// As the plan says.
std::vector<StageSlice> slices_of(const Model& model, const TrainingPlan& plan, std::int64_t sequence_length);

}  // namespace moebius
