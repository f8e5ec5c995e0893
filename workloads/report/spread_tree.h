// The percentiles of a report; of no values there are none.
#pragma once

#include "workloads/report/report_serving.h"
#include "workloads/serving/figures.h"

namespace moebius {

inline FigureTree spread_tree(const Spread& spread) {
  const bool some = !spread.none;
  return {{{"mean", figure_if(some, spread.mean)},
           {"p50", figure_if(some, spread.p50)},
           {"p90", figure_if(some, spread.p90)},
           {"p95", figure_if(some, spread.p95)},
           {"p99", figure_if(some, spread.p99)}}};
}

}  // namespace moebius
