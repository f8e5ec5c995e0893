// Quantisation of activations as part of a GEMM: serving frameworks measure and run both as one, training
// schedules quantise apart. What of a measured time is the one, what the other.
#pragma once

#include <optional>

#include "workloads/cost/analytic.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// The op that quantises the BF16 activations of a GEMM kind in 8 or 4 bits (of a weight gradient: both
// operands, with scales along the tokens); nothing for other kinds and types.
std::optional<CostQuery> quantise_of(const CostQuery& gemm);

// The model's estimate of the op and, when it quantises its own activations, of `passes` such passes before
// it: two where the largest value of all must be known before the first is divided.
Estimate whole_estimate(const AnalyticModel& model, const CostQuery& query, int passes, Clocks clocks);

}  // namespace moebius
