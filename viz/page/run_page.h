// `moebius report`: one or two runs as one page that needs nothing beside it.
#pragma once

#include <string>

#include "viz/page/run_sections.h"

namespace moebius::viz {

std::string run_page(const RunOnPage& run);

// Two runs beside each other: figures, parts and lanes to one scale, then which ops differ most.
std::string comparison_page(const RunOnPage& a, const RunOnPage& b);

}  // namespace moebius::viz
