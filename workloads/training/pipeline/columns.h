// Folding and the network. Ranks of a stage do the same work, but they do not all wait equally long: an
// expert group of 64 may stand in one rack of 72 or in two, and where leaves or pods are short of uplinks on
// one leaf or on two, its neighbour in the pipeline in the same pod or in another, with more or with fewer
// others on the way. A *column* is the ranks of all stages that one run of expert groups (and tensor and
// context groups) passes its microbatches along; columns that meet the same are of one kind, and a class is
// the ranks of one kind in one stage.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/fabric/fabric.h"
#include "workloads/training/plan.h"

namespace moebius {

// Ranks of a column in one stage: whole expert, tensor and context groups.
int ranks_of_column(const TrainingPlan& plan);

// The kind of each column of a folded plan, numbered in the order of first use; none where all are alike.
// Columns are of one kind when the borders of scale-up domains cut them alike, stage by stage (so there are
// no more of these kinds than devices in a domain), and as many of their ranks stand on leaves and pods that
// are used alike where these can be a bottleneck, which is refined until it no longer changes (colour
// refinement), or for as long as it gives at most `most_kinds`: then the worst placed column of a kind stands
// for it. A group that domains cut unevenly is as slow as its busiest device makes it: 256 ranks of GB200
// with experts over 64 on racks of 72 take 15.3 s a step folded and 12.7 s unfolded. `devices`: where each
// rank stands; empty: rank i on device i.
std::vector<std::int32_t> column_kinds(const TrainingPlan& plan, const Fabric& fabric,
                                       const std::vector<std::int32_t>& devices = {}, int most_kinds = 16);

// Whether ranks in this order meet what they would on domains of fewer devices: ascending, and at the same
// places of every domain that has any. Then they fold as ranks that fill their domains do.
bool fills_like_domains(const std::vector<std::int32_t>& devices, const Fabric& fabric);

// The layout with one class for each stage and kind of column; make_layout(plan) for no kinds.
Layout make_layout(const TrainingPlan& plan, const std::vector<std::int32_t>& column_kinds);

}  // namespace moebius
