#include "workloads/calibration/calibrate.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/calibration/condense.h"
#include "workloads/calibration/model/architecture_file.h"
#include "workloads/calibration/model/model_error.h"
#include "workloads/calibration/page/accuracy_table.h"
#include "workloads/calibration/page/latent_module.h"
#include "workloads/calibration/page/neighbour_error.h"
#include "workloads/calibration/page/published_kernels.h"

namespace moebius {

void write_profile_page(const std::string& directory, const Catalog& catalog,
                        const std::vector<Profile>& profiles) {
  const std::string page = directory + "/README.md", details = directory + "/errors.md";
  write_section(page, "accuracy", accuracy_summary(profiles));
  write_section(details, "tables", accuracy_table(profiles));
  write_section(details, "neighbours", neighbour_table(profiles));
  write_section(details, "sites", site_table(profiles));
  write_section(
      page, "published",
      published_table(read_published_kernels(directory + "/published.csv", catalog), catalog, profiles));
}

std::vector<Profile> calibrate(const std::string& from, const Catalog& catalog, const std::string& name,
                               const std::string& out) {
  if (name != "all") {
    const Profile profile = condense(from, catalog.accelerator(name));
    save_profile(profile, out);
    return {profile};
  }
  // What is missing is said before the hour's work, not after it.
  for (const char* section : {"accuracy", "published", "composition"})
    read_section(out + "/README.md", section);
  for (const char* section : {"tables", "neighbours", "sites"}) read_section(out + "/errors.md", section);
  read_published_kernels(out + "/published.csv", catalog);
  std::vector<Profile> profiles;
  for (const std::string& id : catalog.accelerator_ids()) {
    Profile profile = find_kernels(from, catalog.accelerator(id));
    if (profile.tables.empty()) continue;
    save_profile(profile, out + "/" + id + ".json");
    profiles.push_back(std::move(profile));
  }
  write_profile_page(out, catalog, profiles);
  write_section(out + "/README.md", "composition", composition_table(from, profiles));
  return profiles;
}

std::string calibrate_tables(const TablesRequest& request, const Catalog& catalog) {
  if (request.from.empty()) throw input_error("calibrate: expected --from DIR or --device host|cuda:N");
  if (request.model_errors) return model_error_table(request.from, catalog);
  if (request.out.empty() || (request.accelerator.empty() && !request.fit_model))
    throw input_error(
        "calibrate: expected --accelerator and --out, --fit-model and --out, or --model-errors");
  if (request.fit_model)
    return fmt::format("{} architectures fitted: {}\n",
                       fit_architecture_file(request.from, catalog, request.out), request.out);
  std::string text;
  for (const Profile& profile : calibrate(request.from, catalog, request.accelerator, request.out))
    text += fmt::format("{} tables of {}: {}\n", profile.tables.size(), profile.accelerator, request.out);
  return text;
}

}  // namespace moebius
