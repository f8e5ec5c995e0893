#include "workloads/calibration/page/neighbour_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "hw/percent.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

constexpr std::size_t kMostValues = 2000, kMostSites = 40, kLeastSites = 5;

// Chips whose makers published what differs between them, and the one that stands in for each.
struct Pair {
  std::string_view chip, donor;
};
constexpr Pair kPairs[] = {{"h800-sxm", "h100-sxm"}, {"h20-sxm", "h800-sxm"},  {"h20-sxm", "h100-sxm"},
                           {"h200-sxm", "h100-sxm"}, {"b300-sxm", "b200-sxm"}, {"gb300-nvl72", "b200-sxm"},
                           {"h100-sxm", "a100-sxm"}, {"b200-sxm", "h100-sxm"}};

Shape shape_at(const ProfileTable& table, OpKind kind, std::size_t value) {
  const std::size_t grid = table.grid_size();
  std::vector<double> at(table.axes.size());
  std::size_t index = value % grid;
  for (std::size_t i = table.axes.size(); i-- > 0; index /= table.axes[i].points.size())
    at[i] = table.axes[i].points[index % table.axes[i].points.size()];
  return shape_in(table, kind, table.sites[value / grid], at);
}

// Signed errors of some way of telling a query's seconds; a value that it cannot tell is passed over.
template <typename Tell>
std::vector<double> errors_of(const ProfileTable& table, const std::vector<std::size_t>& values, Tell tell) {
  const OpKind kind = *kind_of(table.kinds.front());
  std::vector<double> errors;
  for (const std::size_t value : values) {
    const double us = table.microseconds[value];
    const std::optional<double> told =
        tell(query_of(table, kind, shape_at(table, kind, value)), clocks_of(table, us));
    if (told) errors.push_back(*told * 1e6 / us - 1);
  }
  return errors;
}

NeighbourError summary_of(std::vector<double> errors) {
  if (errors.empty()) return {};
  NeighbourError summary{.values = static_cast<int>(errors.size())};
  std::sort(errors.begin(), errors.end());
  summary.bias = errors[errors.size() / 2];
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  summary.median = errors[errors.size() / 2];
  summary.p90 = errors[errors.size() * 9 / 10];
  return summary;
}

// Of what was measured all, or so many that about kMostValues remain. By a hash, since
// steps of even length would fall on the same points of an axis.
std::vector<std::size_t> sampled_values(const ProfileTable& table) {
  std::vector<std::size_t> values;
  for (std::size_t value = 0; value < table.microseconds.size(); ++value)
    if (!std::isnan(table.microseconds[value])) values.push_back(value);
  const std::size_t one_in = values.size() / kMostValues + 1;
  std::erase_if(values, [&](std::size_t value) { return (value * 2654435761U >> 16) % one_in != 0; });
  return values;
}

// The profile of one table that lacks a site.
Profile without_site(const ProfileTable& table, const Accelerator& reference, std::size_t site) {
  Profile profile;
  profile.accelerator = reference.id;
  profile.reference = reference;
  profile.tables = {table};
  ProfileTable& rest = profile.tables.front();
  const auto grid = static_cast<std::ptrdiff_t>(table.grid_size()), at = static_cast<std::ptrdiff_t>(site);
  rest.sites.erase(rest.sites.begin() + at);
  rest.microseconds.erase(rest.microseconds.begin() + at * grid, rest.microseconds.begin() + (at + 1) * grid);
  return profile;
}

std::vector<std::size_t> values_of_site(const ProfileTable& table, std::size_t site) {
  const std::size_t grid = table.grid_size();
  std::vector<std::size_t> values;
  for (std::size_t value = site * grid; value < (site + 1) * grid; ++value)
    if (!std::isnan(table.microseconds[value])) values.push_back(value);
  return values;
}

bool has_stack(const Profile& profile, std::string_view stack) {
  return std::any_of(profile.tables.begin(), profile.tables.end(),
                     [&](const ProfileTable& table) { return table.stack == stack; });
}

const Profile* find(const std::vector<Profile>& profiles, std::string_view id) {
  const auto found =
      std::find_if(profiles.begin(), profiles.end(), [&](auto& p) { return p.accelerator == id; });
  return found == profiles.end() ? nullptr : &*found;
}

std::string_view stored_text(const ProfileTable& table) {
  return table.stored ? to_string(*table.stored) : to_string(table.dtype);
}

// A kernel of a format stands once: in the chip's best stack.
void add_pair(std::string& text, const Profile& chip, const Profile& donor) {
  std::set<std::string> shown;
  for (const ProfileTable& table : chip.tables) {
    if (table.in_sample || table.when_named) continue;
    const std::string kernel =
        fmt::format("{} | {} | {}", table.name, to_string(table.dtype), stored_text(table));
    if (shown.contains(kernel)) continue;
    const NeighbourError told = told_by_neighbour(table, chip.reference, donor);
    if (told.values == 0) continue;
    shown.insert(kernel);
    const NeighbourError model = told_by_model(table, chip.reference);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {:+.1f} | {} |\n", chip.accelerator,
                        donor.accelerator, kernel, told.values, percent(told.median), percent(told.p90),
                        100 * told.bias, percent(model.median));
  }
}

}  // namespace

NeighbourError told_by_neighbour(const ProfileTable& table, const Accelerator& reference,
                                 const Profile& donor) {
  const AnalyticModel chip(reference);
  const MeasuredTables tables({donor}, has_stack(donor, table.stack) ? table.stack : "");
  return summary_of(errors_of(table, sampled_values(table), [&](const CostQuery& query, Clocks clocks) {
    const std::optional<Cost> cost = tables.cost(chip, query, clocks);
    return cost ? std::optional(cost->seconds) : std::nullopt;
  }));
}

NeighbourError told_by_model(const ProfileTable& table, const Accelerator& reference) {
  const AnalyticModel chip(reference);
  return summary_of(errors_of(table, sampled_values(table), [&](const CostQuery& query, Clocks clocks) {
    return std::optional(chip.estimate(query, clocks).seconds);
  }));
}

NeighbourError told_by_other_sites(const ProfileTable& table, const Accelerator& reference) {
  if (table.sites.size() < kLeastSites) return {};
  const AnalyticModel chip(reference);
  const std::size_t step = (table.sites.size() + kMostSites - 1) / kMostSites;
  std::vector<double> errors;
  for (std::size_t site = 0; site < table.sites.size(); site += step) {
    const MeasuredTables tables({without_site(table, reference, site)});
    const auto tell = [&](const CostQuery& query, Clocks clocks) {
      const std::optional<Cost> cost = tables.cost(chip, query, clocks);
      return std::optional(cost ? cost->seconds : chip.estimate(query, clocks).seconds);
    };
    const std::vector<double> more = errors_of(table, values_of_site(table, site), tell);
    errors.insert(errors.end(), more.begin(), more.end());
  }
  return summary_of(std::move(errors));
}

std::string neighbour_table(const std::vector<Profile>& profiles) {
  std::string text =
      "| chip | told from | kernel | format | stored | values | median % | p90 % | bias % | model alone, "
      "median % "
      "|\n|---|---|---|---|---|--:|--:|--:|--:|--:|\n";
  for (const Pair& pair : kPairs) {
    const Profile *chip = find(profiles, pair.chip), *donor = find(profiles, pair.donor);
    if (chip != nullptr && donor != nullptr) add_pair(text, *chip, *donor);
  }
  return text;
}

std::string site_table(const std::vector<Profile>& profiles) {
  std::string text =
      "| chip | kernel | format | stored | stack | sites | values | median % | p90 % | bias % |\n"
      "|---|---|---|---|---|--:|--:|--:|--:|--:|\n";
  for (const Profile& profile : profiles)
    for (const ProfileTable& table : profile.tables) {
      if (table.when_named) continue;  // a law made it, or others hold its rows, too
      const NeighbourError told = told_by_other_sites(table, profile.reference);
      if (told.values == 0) continue;
      text +=
          fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:+.1f} |\n", profile.accelerator,
                      table.name, to_string(table.dtype), stored_text(table), table.stack, table.sites.size(),
                      told.values, percent(told.median), percent(told.p90), 100 * told.bias);
    }
  return text;
}

}  // namespace moebius
