// `moebius compare`: two runs beside each other, their losses and their ops.
#pragma once

#include <string>

namespace moebius {

// Each run is its directory or its timeline. Losses are compared where both runs have some, whatever their
// schedules; ops are joined where both timelines kept them, and the critical paths shown side by side where
// both runs did the same. Without losses and ops the figures of both reports are compared; input_error where
// there are no reports either.
std::string compare_runs(const std::string& run_a, const std::string& run_b);

}  // namespace moebius
