// `moebius calibrate`: from published tables to profile files.
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "hw/profile.h"

namespace moebius {

// Condenses the tables in `from` for the chip `name` and writes its profile to the file `out`. "all": for
// every chip of the catalog that has rows, to ID.json in the directory `out`, and the errors of all to the
// section of its README.md. Returns what was written. Throws as condense(), save_profile() and
// write_section().
std::vector<Profile> calibrate(const std::string& from, const Catalog& catalog, const std::string& name,
                               const std::string& out);

}  // namespace moebius
