// `moebius calibrate`: from published tables to profile files.
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "hw/profile.h"

namespace moebius {

// Condenses the tables in `from` for the chip `name` and writes its profile to the file `out`. "all": for
// every chip of the catalog that has rows, to ID.json in the directory `out`, and then write_profile_page().
// Returns what was written. Throws as condense(), save_profile() and write_profile_page().
std::vector<Profile> calibrate(const std::string& from, const Catalog& catalog, const std::string& name,
                               const std::string& out);

// What the command line asks the tables for: the profile of `accelerator`, errors of the analytic
// model, or constants, all of a kind in one file (see fits_text()).
struct TablesRequest {
  std::string from, accelerator, out;
  std::string fit;
  bool model_errors = false;
};
// What --fit may name and the catalog file that holds the result: "model (hw/catalog/architectures.json)".
std::string fits_text();
std::vector<std::string> fit_names();
// Does it; returns what there is to tell. input_error for an incomplete request.
std::string calibrate_tables(const TablesRequest& request, const Catalog& catalog);

// Writes the sections of directory/README.md: "accuracy", "neighbours", "sites", and "published", which is
// about the kernels of directory/published.csv. Throws as write_section() and read_published_kernels().
void write_profile_page(const std::string& directory, const Catalog& catalog,
                        const std::vector<Profile>& profiles);

}  // namespace moebius
