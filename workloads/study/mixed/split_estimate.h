// What a split of a job over pools of different chips comes to by their efficiency matrices: cheap enough for
// every legal split.
#pragma once

#include <vector>

#include "workloads/study/mixed/split_search.h"

namespace moebius {

// Seconds of one rank for a layer of a microbatch, forward and back, without any other rank in its way: dense
// products (forward three times) at the share of the peak that the matrix has for the MLP's width over tp,
// attention over what is seen at its own shares forward and back (2.5 times the work), norms, sums and
// activations (10 passes over the hidden rows and 3 over the MLP's, forward three times) at that of a norm,
// and eight gathers or sums of the hidden rows over the scale-up link.
double layer_seconds(const EfficiencyMatrix& matrix, const Pool& pool, const Scenario& scenario, int tp);

// Seconds of a step: the slowest stage under whole layers, laid out as even as the chips allow, for each
// microbatch and those that fill the pipeline (of a zero-bubble schedule a third of them, of an interleaved
// one a part for each of its chunks); of replicas the slowest under whole microbatches. `layer`:
// layer_seconds() of each pool.
double step_estimate(const SplitPlan& plan, const Scenario& scenario, const std::vector<double>& layer);

// Every way that whole stages stand on these pools, and replicas side by side where there are several; orders
// of pools beside the given one are left out: see split_search.cpp.
std::vector<SplitPlan> legal_splits(const Scenario& scenario, const std::vector<int>& pools);

}  // namespace moebius
