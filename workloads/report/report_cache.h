// The report's part on tiers below device memory.
#pragma once

#include <string>

#include "workloads/report/report_serving.h"

namespace moebius {

// Figures and parts of the report's `kv`.
void add_tiers(FigureTree& kv, const TierFigures& tiers);
std::string tiers_text(const TierFigures& tiers);

}  // namespace moebius
