// Folding and the network. Ranks of a stage do the same work, but where leaves or pods are short of uplinks
// they do not all wait equally long: an expert group may stand on one leaf or on two, its neighbour in the
// pipeline in the same pod or in another, with more or with fewer others on the way. A *column* is the ranks
// of all stages that one run of expert groups (and tensor and context groups) passes its microbatches along;
// columns that meet the same are of one kind, and a class is the ranks of one kind in one stage.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/fabric/fabric.h"
#include "workloads/training/plan.h"

namespace moebius {

// Ranks of a column in one stage: whole expert, tensor and context groups.
int ranks_of_column(const TrainingPlan& plan);

// The kind of each column of a folded plan, numbered in the order of first use; none where all are alike, as
// they are when neither leaves nor pods can be a bottleneck. Columns are of one kind when as many of their
// ranks stand, stage by stage, on leaves and pods that are used alike, which is refined until it no longer
// changes (colour refinement), or for as long as it gives at most `most_kinds`: then the worst placed column
// of a kind stands for it.
std::vector<std::int32_t> column_kinds(const TrainingPlan& plan, const Fabric& fabric, int most_kinds = 16);

// The layout with one class for each stage and kind of column; make_layout(plan) for no kinds.
Layout make_layout(const TrainingPlan& plan, const std::vector<std::int32_t>& column_kinds);

}  // namespace moebius
