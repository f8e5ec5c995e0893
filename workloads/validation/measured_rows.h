// A table of measured rows as scenarios: a mapping says which template they fill and what each column is.
// The form is described in scenarios/validate/README.md.
#pragma once

#include <string>
#include <vector>

#include "workloads/validation/validation.h"

namespace moebius {

// One case for each row of `table`: CSV, or a JSON array of objects.
// input_error for what is wrong with either, and for a column that the table has not.
std::vector<ValidationCase> measured_cases(const std::string& table, const std::string& mapping);

}  // namespace moebius
