// How often something is timed, and what is said of it.
#pragma once

#include <functional>
#include <vector>

#include "workloads/cost/op_bench.h"

namespace moebius {

// Value at `share` (0..1) of the sorted times, linear between two of them.
double quantile(const std::vector<double>& sorted, double share);

// Of at least one time. The spread of a single one is 0.
OpMeasurement summary_of(std::vector<double> seconds);

// Calls once(), which returns seconds, by the rule: first one call that does not count. The standard error of
// the median is taken as 1.253 times that of the mean, the deviation from the quartiles (their distance over
// 1.349), as of normal errors.
OpMeasurement repeat(const StoppingRule& rule, const std::function<double()>& once);

}  // namespace moebius
