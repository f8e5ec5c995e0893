// Figures of a service of one phase alone: what a node takes in or gives out.
#pragma once

#include <string>

#include "workloads/report/report_serving.h"

namespace moebius {

// Adds tokens by node and by device, input in prefill, output in decode; nothing where a service does both.
void add_phase_rows(FigureTree& tree, const Report& report);
std::string phase_text(const Report& report);

}  // namespace moebius
