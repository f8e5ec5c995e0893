// hw/catalog/collectives.json, written anew (`moebius calibrate --from DIR --fit links --out FILE`).
#pragma once

#include <string>

#include "workloads/calibration/links/measured_collectives.h"

namespace moebius {

// The shipped constants, of every chip in `rows` fitted to its all-reduce between 2 and between 8 devices:
// launch and LL's step from the smallest sizes, the rest by least relative error over all sizes.
CollectiveConstants fit_links(const std::vector<MeasuredCollective>& rows, const Catalog& catalog);

// Written to a temporary name beside `out` and renamed; run_error when that fails, input_error when `from`
// has no table of collectives. Returns what was written.
CollectiveConstants fit_links_file(const std::string& from, const Catalog& catalog, const std::string& out);

}  // namespace moebius
