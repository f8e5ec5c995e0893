// The report's part on tiers below device memory.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/report/report_serving.h"

namespace moebius {

// Figures and parts of the report's `kv`; without tiers, what is found in device memory alone. Blocks are
// those of prompts, of so many tokens each: tiers hold whole ones.
void add_blocks(FigureTree& kv, const ServiceFigures& service, std::int64_t block_tokens);
std::string tiers_text(const TierFigures& tiers, std::int64_t block_tokens);

}  // namespace moebius
