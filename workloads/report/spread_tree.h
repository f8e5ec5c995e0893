// The percentiles of a report.
#pragma once

#include "workloads/report/report_serving.h"
#include "workloads/serving/figures.h"

namespace moebius {

inline FigureTree spread_tree(const Spread& spread) {
  return {{{"mean", spread.mean},
           {"p50", spread.p50},
           {"p90", spread.p90},
           {"p95", spread.p95},
           {"p99", spread.p99}}};
}

}  // namespace moebius
