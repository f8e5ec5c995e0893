#include "workloads/calibration/calibrate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "hw/new_file.h"
#include "workloads/calibration/condense.h"
#include "workloads/calibration/exchanges/fit_exchanges.h"
#include "workloads/calibration/links/error_table.h"
#include "workloads/calibration/links/fit_links.h"
#include "workloads/calibration/model/architecture_file.h"
#include "workloads/calibration/model/model_error.h"
#include "workloads/calibration/page/accuracy_table.h"
#include "workloads/calibration/page/latent_module.h"
#include "workloads/calibration/page/neighbour_error.h"
#include "workloads/calibration/page/published_kernels.h"

namespace moebius {
namespace {

// Constants of one kind, fitted for all chips together. Returns what there is to tell.
struct FitOption {
  std::string_view name, file;
  std::string (*write)(const TablesRequest&, const Catalog&);
};

std::string fit_model(const TablesRequest& request, const Catalog& catalog) {
  return fmt::format("{} architectures fitted: {}\n",
                     fit_architecture_file(request.from, catalog, request.out), request.out);
}

std::string fit_exchange_constants(const TablesRequest& request, const Catalog& catalog) {
  return fmt::format("{} kernels of dispatch and combine: {}\n",
                     fit_exchange_file(request.from, catalog, request.out), request.out);
}

std::string fit_collectives(const TablesRequest& request, const Catalog& catalog) {
  const CollectiveConstants constants = fit_links_file(request.from, catalog, request.out);
  const std::vector<MeasuredCollective> rows = read_measured_collectives(request.from, catalog);
  const CollectiveErrors errors = collective_errors(rows, constants);
  return fmt::format(
      "{}{} rows that nothing was fitted to: median {:.1f} %, 95th percentile {:.1f} %\n{} libraries on "
      "chips: {}\n",
      collective_error_table(rows, constants), errors.errors.size(), 100 * errors.at(0.5),
      100 * errors.at(0.95), constants.links.size() + constants.frameworks.size(), request.out);
}

constexpr FitOption kFits[] = {{"model", "hw/catalog/architectures.json", fit_model},
                               {"links", "hw/catalog/collectives.json", fit_collectives},
                               {"exchanges", "hw/catalog/exchanges.json", fit_exchange_constants}};

const FitOption& fit_named(const std::string& name) {
  for (const FitOption& fit : kFits)
    if (fit.name == name) return fit;
  throw input_error(fmt::format("calibrate: --fit \"{}\": expected {}", name, fits_text()));
}

}  // namespace

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

std::string fits_text() {
  std::vector<std::string> texts;
  for (const FitOption& fit : kFits) texts.push_back(fmt::format("{} ({})", fit.name, fit.file));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<std::string> fit_names() {
  std::vector<std::string> names;
  for (const FitOption& fit : kFits) names.emplace_back(fit.name);
  return names;
}

std::string calibrate_tables(const TablesRequest& request, const Catalog& catalog) {
  if (request.from.empty()) throw input_error("calibrate: expected --from DIR or --device host|cuda:N");
  if (request.model_errors) return model_error_table(request.from, catalog);
  if (request.out.empty() || (request.accelerator.empty() && request.fit.empty()))
    throw input_error("calibrate: expected --accelerator and --out, --fit and --out, or --model-errors");
  const bool directory = request.fit.empty() && request.accelerator == "all";
  require_writable(directory ? request.out + "/README.md" : request.out);  // before the hour's work
  if (!request.fit.empty()) return fit_named(request.fit).write(request, catalog);
  std::string text;
  for (const Profile& profile : calibrate(request.from, catalog, request.accelerator, request.out))
    text += fmt::format("{} tables of {}: {}\n", profile.tables.size(), profile.accelerator, request.out);
  return text;
}

}  // namespace moebius
