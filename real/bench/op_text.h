// What sentences call an op that is measured.
#pragma once

#include <string>

#include "workloads/cost/cost_source.h"

namespace moebius {

// "grouped_gemm of m 4096, n 2048, k 7168, groups 8 in fp8"
std::string describe(const CostQuery& query);

}  // namespace moebius
