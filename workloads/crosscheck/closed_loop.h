// A service whose decisions met the clock of whoever executed it, and, simulated, that of the simulator: then
// schedules differ, and what requests saw of either is compared as distributions.
#pragma once

#include <string>
#include <vector>

#include "workloads/serving/figures.h"

namespace moebius {

struct LatencyComparison {
  std::string name;  // "ttft"
  Spread simulated, executed;
  double distance = 0;  // of Kolmogorov and Smirnov: the most by which shares of requests below a time differ
};

struct ClosedLoop {
  std::vector<LatencyComparison> latencies;  // TTFT, TPOT, from arrival to last token
  std::int64_t requests = 0;
  std::int64_t simulated_iterations = 0, executed_iterations = 0;
};

double distribution_distance(std::vector<double> a, std::vector<double> b);  // 0: equal; of none: 1

ClosedLoop compare_latencies(const std::vector<RequestTimes>& simulated,
                             const std::vector<RequestTimes>& executed);

std::string to_text(const ClosedLoop& loop);

}  // namespace moebius
