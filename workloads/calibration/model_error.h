// How far the analytic model alone is from measured kernels, every chip told with constants that were fitted
// on others (`moebius calibrate --from DIR --model-errors`).
#pragma once

#include <string>

#include "hw/catalog.h"

namespace moebius {

// A text of one line for every chip, kind of kernel, number format and stack of the tables in `from`: rows,
// median, nine in ten and bias (median of the signed error), and whether the goal of the kind is met. A chip
// is told with the constants of its architecture fitted on the other chips of it; of a chip alone in its
// architecture on its vendor's other chips; one alone in its vendor is listed without errors. input_error when
// `from` has no table.
std::string model_error_table(const std::string& from, const Catalog& catalog);

}  // namespace moebius
