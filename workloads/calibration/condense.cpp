#include "workloads/calibration/condense.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "hw/document.h"
#include "hw/error.h"
#include "hw/new_file.h"
#include "workloads/calibration/fit_rules.h"
#include "workloads/calibration/held_out.h"
#include "workloads/calibration/lattice.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

constexpr std::uint64_t kTestEvery = 5;
constexpr double kNoise = 0.02;  // a row may be so much faster than one with less work

// FNV-1a: the same on every machine.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

bool no_less(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x >= y; });
}

void reject(ProfileTable& table, int rows, const std::string& reason) {
  if (rows > 0) table.rejected.push_back({rows, reason});
}

void reject_repeats(TableDraft& draft) {
  std::vector<MeasuredRow> kept;
  int repeats = 0;
  for (MeasuredRow& row : draft.rows) {
    const bool seen = std::any_of(kept.begin(), kept.end(), [&](const auto& other) {
      return other.site == row.site && other.at == row.at;
    });
    if (seen) {
      ++repeats;
    } else {
      kept.push_back(std::move(row));
    }
  }
  draft.rows = std::move(kept);
  reject(draft.table, repeats, "the shape stood in an earlier row");
}

void reject_noise(TableDraft& draft) {
  std::map<std::vector<double>, std::vector<const MeasuredRow*>> sites;
  for (const MeasuredRow& row : draft.rows) sites[row.site].push_back(&row);
  const auto too_slow = [&](const MeasuredRow& row) {
    const auto& others = sites[row.site];
    return std::any_of(others.begin(), others.end(), [&](const MeasuredRow* other) {
      return no_less(other->at, row.at) && other->microseconds < row.microseconds * (1 - kNoise);
    });
  };
  std::vector<MeasuredRow> kept;
  std::copy_if(draft.rows.begin(), draft.rows.end(), std::back_inserter(kept),
               [&](const auto& row) { return !too_slow(row); });
  reject(draft.table, static_cast<int>(draft.rows.size() - kept.size()),
         "over 2% slower than the same kernel with more work");
  draft.rows = std::move(kept);
}

void place_rows(ProfileTable& table, const std::vector<MeasuredRow>& rows) {
  for (std::size_t axis = 0; axis < table.axes.size(); ++axis) {
    std::vector<double>& points = table.axes[axis].points;
    points.clear();
    for (const MeasuredRow& row : rows) points.push_back(row.at[axis]);
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
  }
  table.sites.clear();
  for (const MeasuredRow& row : rows) table.sites.push_back(row.site);
  std::sort(table.sites.begin(), table.sites.end());
  table.sites.erase(std::unique(table.sites.begin(), table.sites.end()), table.sites.end());
  table.microseconds.assign(table.sites.size() * table.grid_size(), std::numeric_limits<float>::quiet_NaN());
  for (const MeasuredRow& row : rows) {
    const auto site =
        std::lower_bound(table.sites.begin(), table.sites.end(), row.site) - table.sites.begin();
    auto value = static_cast<std::size_t>(site);
    for (std::size_t axis = 0; axis < table.axes.size(); ++axis)
      value = value * table.axes[axis].points.size() + index_in(table.axes[axis].points, row.at[axis]);
    table.microseconds[value] = static_cast<float>(row.microseconds);
  }
}

}  // namespace

bool is_kept_out(const MeasuredRow& row) {
  return hash_of(row.text) % kTestEvery == 0;
}

bool is_check_row(const MeasuredRow& row) {
  return hash_of(row.text) / kTestEvery % kTestEvery == 0;
}

HeldOut test_table(const ProfileTable& table, const std::vector<MeasuredRow>& rows,
                   const Accelerator& reference) {
  Profile profile;
  profile.accelerator = reference.id;
  profile.reference = reference;
  profile.tables = {table};
  const AnalyticModel model(reference);
  const MeasuredTables tables({profile});
  const OpKind kind = *kind_of(table.kinds.front());
  std::vector<double> errors;
  for (const MeasuredRow& row : rows) {
    const CostQuery query = query_of(table, kind, shape_in(table, kind, row.site, row.at));
    const Clocks clocks = clocks_of(table, row.microseconds);
    const auto cost = tables.cost(model, query, clocks);
    const double seconds = cost ? cost->seconds : model.estimate(query, clocks).seconds;
    errors.push_back(seconds * 1e6 / row.microseconds - 1);
  }
  return held_out_of(std::move(errors));
}

ProfileTable lay_table(TableDraft draft, const Accelerator& reference) {
  CHECK(!draft.rows.empty(), draft.table.name);
  reject_repeats(draft);
  reject_noise(draft);
  std::vector<MeasuredRow> built, kept_out;
  for (const MeasuredRow& row : draft.rows) {
    const bool test = draft.rows.size() >= kLeastRowsToTest && is_kept_out(row);
    (test ? kept_out : built).push_back(row);
  }
  place_rows(draft.table, built);
  if (!kept_out.empty()) draft.table.held_out = test_table(draft.table, kept_out, reference);
  return draft.table;
}

ProfileTable lay_rows(TableDraft draft) {
  CHECK(!draft.rows.empty(), draft.table.name);
  place_rows(draft.table, draft.rows);
  return draft.table;
}

// Rows are anybody's: what no run could read is told here, and what stood there before stays.
void save_profile(const Profile& profile, const std::string& path) {
  const std::string text = to_json(profile);
  try {
    profile_from(parse_document(text, path));
  } catch (const Error& error) {
    throw input_error(fmt::format("the rows of {} make a profile that cannot be read: {}",
                                  profile.accelerator, error.what()));
  }
  write_file(path, text);
}

}  // namespace moebius
