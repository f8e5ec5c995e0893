#include "workloads/calibration/calibrate.h"

#include "workloads/calibration/accuracy_table.h"
#include "workloads/calibration/condense.h"
#include "workloads/calibration/latent_module.h"

namespace moebius {

std::vector<Profile> calibrate(const std::string& from, const Catalog& catalog, const std::string& name,
                               const std::string& out) {
  if (name != "all") {
    const Profile profile = condense(from, catalog.accelerator(name));
    save_profile(profile, out);
    return {profile};
  }
  std::vector<Profile> profiles;
  for (const std::string& id : catalog.accelerator_ids()) {
    Profile profile = find_kernels(from, catalog.accelerator(id));
    if (profile.tables.empty()) continue;
    save_profile(profile, out + "/" + id + ".json");
    profiles.push_back(std::move(profile));
  }
  write_section(out + "/README.md", "accuracy", accuracy_table(profiles));
  write_section(out + "/README.md", "composition", composition_table(from, profiles));
  return profiles;
}

}  // namespace moebius
