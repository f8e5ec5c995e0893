// The errors of expert tables: whole rows that were kept out of them, as a sum of ops, against what was
// measured.
#pragma once

#include <vector>

#include "workloads/calibration/experts/expert_fit.h"

namespace moebius {

// Sets `held_out` of the tables: of each the rows that it answers a GEMM of.
void test_experts(std::vector<ProfileTable>& tables, const std::vector<ExpertRow>& rows,
                  const Accelerator& reference);

}  // namespace moebius
