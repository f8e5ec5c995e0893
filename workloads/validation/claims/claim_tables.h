// The scoreboard of claims: one row a claim.
#pragma once

#include <string>
#include <vector>

#include "workloads/validation/claims/judged_claim.h"
#include "workloads/validation/validation.h"

namespace moebius {

std::string to_text(const std::vector<JudgedClaim>& claims);
// A table and, below it, every configuration; for a README.
std::string to_markdown(const std::vector<JudgedClaim>& claims);
// One object for both: that of the cases, with "claims". Ends with a newline.
std::string to_json(const std::vector<ValidatedCase>& cases, const std::vector<JudgedClaim>& claims);

}  // namespace moebius
