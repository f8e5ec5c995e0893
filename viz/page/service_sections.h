// What a page shows of a service besides its latencies and pools, each part empty where the run has nothing
// of it.
#pragma once

#include <string>

#include "viz/page/figures.h"

namespace moebius::viz {

std::string classes(const Figures& figures);  // of requests, against what they were promised
std::string cost(const Figures& figures);     // money and energy, pool by pool
std::string series(const Figures& figures);   // how full the pools were over time

}  // namespace moebius::viz
