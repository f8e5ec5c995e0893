// Local search over placements: see placement.h.
#pragma once

#include "workloads/study/placement/placement.h"

namespace moebius {

// Improves what `loads` holds, with so many estimates at most; returns how many there were. `loads` is left
// at the best placement found.
std::int64_t improve(const PlacementProblem& problem, std::int64_t most, CommunicationLoads& loads);

}  // namespace moebius
