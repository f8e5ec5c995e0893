// Stages that the layers of a served model stand on, one behind the other: how busy they were.
#pragma once

#include <string>

#include "workloads/report/report.h"
#include "workloads/report/report_serving.h"

namespace moebius {

// Of a pool that has several. `span` is the run's: shares of it are those of the stage that worked least and
// of the one that worked most; of the time that batches were under way, those that they waited before stages
// and were on their way between them.
FigureTree stages_tree(const ServicePoolFigures& pool, Time span);
std::string stages_text(const ServicePoolFigures& pool, Time span);

}  // namespace moebius
