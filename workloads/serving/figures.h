// How long requests took, from the moments at which their tokens were there.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/plan.h"

namespace moebius {

// In seconds. Percentiles interpolate between the two nearest of the sorted values.
struct Spread {
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0;
  bool none = false;  // of no values at all: zeros that say nothing
};
Spread spread_of(std::vector<double> values);

// The moments of one request.
struct RequestTimes {
  int input = 0, output = 0;
  std::vector<Time> tokens;  // when each was there, in order
  Time arrival = {};
};

struct ServingFigures {
  std::int64_t submitted = 0, completed = 0;
  Spread ttft;  // arrival to first token
  Spread tpot;  // (last - first token) / (tokens - 1), of requests with more than one
  Spread itl;   // between any two consecutive tokens of a request
  Spread e2e;   // arrival to last token
  double output_tokens_per_s = 0, input_tokens_per_s = 0;  // first arrival to last token
  double goodput_rps = 0, slo_attainment = 0;              // of requests that meet both bounds of the goal
  std::int64_t iterations = 0, prefills = 0;               // of one replica, the one that had most
  double prompt_share = 0;  // of the iterations' time, of a batch, by rows where they had both
  std::int32_t cache_pages = 0, peak_pages = 0;  // of the fullest rank; of a batch, padding included
};

ServingFigures serving_figures(const std::vector<RequestTimes>& requests, const ServiceGoal& goal);

}  // namespace moebius
