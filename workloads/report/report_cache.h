// The report's part on tiers below device memory.
#pragma once

#include <string>

#include "workloads/report/report_serving.h"

namespace moebius {

// Figures and parts of the report's `kv`; without tiers, what is found in device memory alone.
void add_blocks(FigureTree& kv, const ServiceFigures& service);
std::string tiers_text(const TierFigures& tiers);

}  // namespace moebius
