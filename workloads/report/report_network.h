// The report's network section beyond what ranks sent: routing, tiers, balance.
#pragma once

#include <string>

#include "workloads/report/network_use.h"

namespace moebius {

// Lines of the text report, each ended; `seconds`: the run's.
std::string network_text(const NetworkUse& use, double seconds);

}  // namespace moebius
