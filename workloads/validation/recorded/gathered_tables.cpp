#include "workloads/validation/recorded/gathered_tables.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "hw/profile.h"
#include "workloads/accuracy/error_spread.h"
#include "workloads/calibration/exchanges/fit_exchanges.h"
#include "workloads/calibration/links/measured_collectives.h"
#include "workloads/cost/collective_constants.h"

namespace moebius {

namespace {

std::vector<AccuracyPoint> even_quantiles(const std::vector<WeightedPoint>& errors) {
  std::vector<AccuracyPoint> points;
  for (std::size_t i = 0; i < kMostPoints; ++i)
    points.push_back({"", weighted_quantile(errors, (static_cast<double>(i) + 0.5) / kMostPoints), 0});
  return points;
}

std::string kernel_figure(const ProfileTable& table) {
  return table.name.substr(0, std::min(table.name.find(','), table.name.find(" to ")));
}

using SourcesByName = std::map<std::pair<std::string, std::string>, AccuracySource>;  // by figure and name

AccuracySource& source_in(SourcesByName& all, const std::string& figure, const std::string& name,
                          const std::string& chip) {
  AccuracySource& source = all[{figure, name}];
  source.figure = figure, source.name = name, source.chips = {chip};
  return source;
}

std::vector<AccuracySource> in_order(SourcesByName all, AccuracyClass of, const std::string& link) {
  std::vector<AccuracySource> list;
  for (auto& [key, source] : all) {
    source.of = of, source.link = link;
    condense(source);
    list.push_back(std::move(source));
  }
  return list;
}

void add_links(SourcesByName& tests, SourcesByName& fitted, const Catalog& catalog, const std::string& from) {
  const CollectiveConstants& constants = shipped_collectives();
  for (const MeasuredCollective& row : read_measured_collectives(from, catalog)) {
    if (row.eager || row.stands_off) continue;
    SourcesByName& to = is_fitted_to(row, constants) ? fitted : tests;
    AccuracySource& source = source_in(to, "in a node", row.accelerator + " " + row.family, row.accelerator);
    source.devices = std::max<std::int64_t>(source.devices, row.call.devices);
    source.points.push_back({"", std::log(predicted(row, constants).seconds / row.seconds), 0});
  }
}

void add_exchanges(SourcesByName& tests, SourcesByName& fitted, const Catalog& catalog,
                   const std::string& from) {
  const std::vector<ExchangeRow> rows = read_exchange_rows(from, catalog);
  for (const ExchangeRow& row : rows) {
    const auto used = fitted_rows(rows, row.chip, row.question);
    const bool is_fitted = std::find(used.begin(), used.end(), &row) != used.end();
    AccuracySource& source =
        source_in(is_fitted ? fitted : tests, "dispatch and combine", row.chip + " " + row.table, row.chip);
    source.devices = std::max<std::int64_t>(source.devices, row.ranks);
    const ExchangeKernel kernel = exchange_kernel(catalog.accelerator(row.chip), row.question);
    source.points.push_back({"", std::log(model_seconds(kernel, row) / row.seconds), 0});
  }
}

}  // namespace

std::vector<AccuracySource> gathered_kernels(const Catalog& catalog, const std::string& data) {
  SourcesByName all;
  std::map<const AccuracySource*, std::vector<WeightedPoint>> errors;  // each quantile for its share of rows
  for (const std::string& id : catalog.accelerator_ids()) {
    for (const Profile& profile : find_profiles(catalog.accelerator(id), data)) {
      if (profile.accelerator != id) continue;
      for (const ProfileTable& table : profile.tables) {
        const HeldOut& held = table.held_out;
        // Tables that have to be named hold rows of others once more.
        if (held.quantiles.empty() || table.in_sample || table.when_named) continue;
        AccuracySource& source = source_in(all, kernel_figure(table), id + " " + table.stack, id);
        source.rows += held.rows;
        source.worst = std::max(source.worst, held.worst);
        const double weight = held.rows / static_cast<double>(held.quantiles.size());
        for (const double error : held.quantiles) errors[&source].push_back({error, weight});
      }
    }
  }
  for (auto& [key, source] : all) source.points = even_quantiles(errors[&source]);
  return in_order(std::move(all), AccuracyClass::kKernels, "hw/profiles/errors.md");
}

std::vector<AccuracySource> gathered_collectives(const Catalog& catalog, const std::string& from) {
  SourcesByName tests, fitted;
  const std::filesystem::path kernels = std::filesystem::path(from) / "kernels";
  if (std::filesystem::exists(kernels / "nccl.csv.gz")) add_links(tests, fitted, catalog, from);
  add_exchanges(tests, fitted, catalog, from);
  for (auto& [key, source] : fitted) source.calibration = true;
  std::vector<AccuracySource> list =
      in_order(std::move(tests), AccuracyClass::kCollectives, "hw/catalog/collectives.json");
  for (AccuracySource& source :
       in_order(std::move(fitted), AccuracyClass::kCollectives, "hw/catalog/collectives.json"))
    list.push_back(std::move(source));
  return list;
}

}  // namespace moebius
