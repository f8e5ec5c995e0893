// What a device of each pool of a service holds, before anything runs.
#pragma once

#include <string>

#include "workloads/service/pools.h"

namespace moebius {

// Instances and their degrees; then bytes by kind, with how many tokens a replica's cache takes.
std::string describe(const ServicePool& pool);

}  // namespace moebius
