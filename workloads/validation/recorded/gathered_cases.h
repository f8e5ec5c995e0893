// What runs of `validate` say of the simulator, as sources of a record (accuracy/record.h).
#pragma once

#include <vector>

#include "workloads/accuracy/record.h"
#include "workloads/validation/servers/server_errors.h"
#include "workloads/validation/validation.h"

namespace moebius {

// Of scenarios with expected figures: the folder below scenarios/validate, or the table, is the source. Of
// several figures that a row of measurements gives of one thing (step time, tokens a second, MFU) the first
// counts.
std::vector<AccuracySource> gathered(const std::vector<ValidatedCase>& cases);

// Of measured servers: what one framework serves of one model on one system is a source. Rows that host costs
// are fitted to are calibration.
std::vector<AccuracySource> gathered(const std::vector<ServerResult>& results);

}  // namespace moebius
