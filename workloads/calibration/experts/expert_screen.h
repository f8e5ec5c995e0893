// Rows of expert layers that other rows contradict: the framework's tuner had found no kernel for them and
// ran any. Judged by measured rows alone, never by what a table or a model says.
#pragma once

#include <vector>

#include "workloads/calibration/experts/expert_fit.h"

namespace moebius {

// Takes rows away that are slower than half as much again as the same layer under the same distribution with
// more tokens, as any layer under it with no fewer rows, experts, inputs and outputs on a rank, or than twice
// the same layer and tokens under another distribution, in proportion to the rows or the loaded experts where
// those are more. Returns what was taken, with the reasons.
std::vector<RejectedRows> reject_untuned(std::vector<ExpertRow>& rows);

// Takes rows away that are faster than the chip's memory brings their weights: replays found those in L2,
// where a model of many layers does not.
std::vector<RejectedRows> reject_cached(std::vector<ExpertRow>& rows, const Accelerator& chip);

}  // namespace moebius
