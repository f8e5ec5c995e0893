// How far the constants of collectives are from timings that they were not fitted to.
#pragma once

#include <string>
#include <vector>

#include "workloads/calibration/links/measured_collectives.h"

namespace moebius {

struct CollectiveErrors {
  std::vector<double> errors;  // relative, of the rows that are scored; sorted
  std::vector<const MeasuredCollective*> stand_off;
  int eager = 0;  // launched one by one: the host's time, which belongs to a machine and not to a link
  double at(double share) const;  // the error that so many of the rows stay within
};

// Of the rows that `constants` were not fitted to, stand not off and were not launched one by one.
CollectiveErrors collective_errors(const std::vector<MeasuredCollective>& rows,
                                   const CollectiveConstants& constants);

// By chip, library and operation: median / 95th percentile in per cent between 2, 4 and 8 devices; rows that
// the constants were fitted to stand in brackets. Markdown.
std::string collective_error_table(const std::vector<MeasuredCollective>& rows,
                                   const CollectiveConstants& constants);

}  // namespace moebius
