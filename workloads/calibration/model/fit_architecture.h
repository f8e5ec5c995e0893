// The constants of an architecture from measured kernels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/calibration/model/model_rows.h"
#include "workloads/cost/analytic.h"

namespace moebius {

// What the model says of a row: the sum over its kernels, at the clocks of continuous load.
double model_microseconds(const AnalyticModel& model, const ModelRow& row);

// The architecture with the constants that tell the chips' rows best: the least mean of relative errors, each
// cut off at 1, over the kinds of kernels of every architecture among the chips. Chips of other architectures
// are told with their own structure. Deterministic; search one constant after the other, in steps that
// shrink.
Architecture fit_constants(const Architecture& start, const std::vector<const MeasuredChip*>& chips);

// The constants for one chip fitted on others: those of its architecture, or, where there are none with rows,
// all of its vendor. Nothing for a chip alone in its vendor.
struct OthersFit {
  Architecture row;
  std::string chips;  // that it was fitted on: "h200-sxm" or "NVIDIA"
};
std::optional<OthersFit> fit_on_others(const MeasuredChip& chip, const std::vector<MeasuredChip>& all);

}  // namespace moebius
