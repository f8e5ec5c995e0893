// hw/catalog/architectures.json, written anew (`moebius calibrate --from DIR --fit model --out FILE`).
#pragma once

#include <string>

#include "hw/catalog.h"

namespace moebius {

// The shipped rows; of every architecture that `from` has measured kernels of, with constants fitted on all
// its chips, and as errors the medians over them, each told with constants of others (model_errors()).
// Written to a temporary name beside `out` and renamed; run_error when that fails, input_error when `from`
// has no table. Returns how many rows were fitted.
int fit_architecture_file(const std::string& from, const Catalog& catalog, const std::string& out);

}  // namespace moebius
