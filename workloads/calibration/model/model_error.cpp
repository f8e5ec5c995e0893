#include "workloads/calibration/model/model_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "workloads/calibration/model/fit_architecture.h"

namespace moebius {
namespace {

constexpr const char* kHead =
    "The analytic model alone, without tables, against measured kernels. Every chip is told with constants\n"
    "fitted on others. Large tables are sampled: the same rows every time, chosen by a hash of their "
    "text.\n\n"
    "| chip | kernel | format | stack | fitted on | rows | median % | p90 % | bias % | goal |\n"
    "|---|---|---|---|---|--:|--:|--:|--:|---|\n";

using Group = std::tuple<std::size_t, std::string, std::string>;  // kind, format, stack

std::vector<ModelErrors> errors_of(const MeasuredChip& chip, const std::vector<MeasuredChip>& all) {
  const auto fit = fit_on_others(chip, all);
  std::optional<AnalyticModel> model;
  if (fit) model.emplace(chip.chip, fit->row);
  std::map<Group, ModelErrors> groups;
  for (std::size_t kind = 0; kind < chip.kinds.size(); ++kind)
    for (const ModelRow& row : chip.kinds[kind]) {
      ModelErrors& group = groups[{kind, row.format, row.stack}];
      ++group.rows;
      if (model) group.errors.push_back(model_microseconds(*model, row) / row.microseconds - 1);
    }
  std::vector<ModelErrors> list;
  for (auto& [key, group] : groups) {
    std::tie(group.kind, group.format, group.stack) = key;
    group.chip = chip.chip.id;
    group.architecture = chip.chip.architecture;
    if (fit) group.fitted_on = fit->chips;
    std::sort(group.errors.begin(), group.errors.end());
    list.push_back(std::move(group));
  }
  return list;
}

std::string line_of(const ModelErrors& group) {
  const ModelRowKind& kind = model_row_kinds()[group.kind];
  const std::string name =
      fmt::format("| {} | {} | {} | {} |", group.chip, kind.name, group.format, group.stack);
  if (group.errors.empty()) return fmt::format("{} no other chip | {} | | | | |\n", name, group.rows);
  const std::vector<double> sizes = magnitudes(group.errors);
  const double middle = median(sizes), most = sizes[sizes.size() * 9 / 10];
  return fmt::format("{} {} | {} | {:.1f} | {:.1f} | {:+.1f} | {:.0f}: {} |\n", name, group.fitted_on,
                     group.rows, 100 * middle, 100 * most, 100 * median(group.errors), 100 * kind.goal,
                     middle < kind.goal ? "met" : "missed");
}

}  // namespace

double median(const std::vector<double>& ascending) {
  return ascending[ascending.size() / 2];
}

std::vector<double> magnitudes(const std::vector<double>& errors) {
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

std::vector<ModelErrors> model_errors(const std::vector<MeasuredChip>& chips) {
  std::vector<ModelErrors> list;
  for (const MeasuredChip& chip : chips)
    for (ModelErrors& group : errors_of(chip, chips)) list.push_back(std::move(group));
  return list;
}

std::string model_error_table(const std::string& from, const Catalog& catalog) {
  std::string text = kHead;
  for (const ModelErrors& group : model_errors(read_measured_chips(from, catalog))) text += line_of(group);
  return text;
}

}  // namespace moebius
