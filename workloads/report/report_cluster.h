// The report's part on weeks of a cluster.
#pragma once

#include <string>

#include "workloads/report/report_serving.h"

namespace moebius {

FigureTree spread_tree(const RunSpread& of);
FigureTree cluster_tree(const ClusterFigures& figures);  // `cluster` of the report
std::string cluster_text(const ClusterFigures& figures);

}  // namespace moebius
