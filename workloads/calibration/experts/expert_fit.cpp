#include "workloads/calibration/experts/expert_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "hw/error.h"
#include "workloads/calibration/experts/expert_parts.h"
#include "workloads/calibration/experts/expert_test.h"
#include "workloads/calibration/fit_rules.h"
#include "workloads/cost/measured_table.h"

namespace moebius {
namespace {

constexpr double kGain = 0.99;  // a finer grid must lose less than so much of the coarser one's loss

// A row as the fit sees it: what its GEMMs took together, and the values that tell it.
struct Told {
  double microseconds = 0;
  std::vector<ExpertPart> parts;
  bool check = false;
};

class Fit {
 public:
  Fit(const ExpertParts& parts, const std::vector<const ExpertRow*>& rows)
      : points_(parts.points()), values_of_(parts.pairs().size() * points_.size()) {
    for (const ExpertRow* row : rows)
      told_.push_back({parts.gemm_microseconds(*row), parts.of(*row), row->check});
    for (std::size_t i = 0; i < told_.size(); ++i)
      for (const ExpertPart& part : told_[i].parts) values_of_[part.value].push_back(i);
  }

  // Measured over modelled time at every value; zero where no row says anything.
  std::vector<double> corrections(bool without_check_rows) const {
    const std::vector<double> start = nearest(without_check_rows);
    std::vector<double> values = start;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      double moved = 0;
      for (std::size_t value = 0; value < values.size(); ++value) {
        if (values[value] <= 0) continue;
        const double better = best_value(value, values, start[value], without_check_rows);
        moved = std::max(moved, std::abs(better / values[value] - 1));
        values[value] = better;
      }
      if (moved < 1e-6) break;
    }
    fill_gaps(values);
    return values;
  }

  // Mean loss on check rows of the fit that did not see them.
  double loss() const {
    const std::vector<double> values = corrections(true);
    double sum = 0;
    int rows = 0;
    for (const Told& row : told_) {
      if (!row.check) continue;
      ++rows;
      double told = 0;
      for (const ExpertPart& part : row.parts) told += part.microseconds * values[part.value];
      sum += std::min(kMostLossOfRow, std::abs(told / row.microseconds - 1));
    }
    return rows > 0 ? sum / rows : 0;
  }

 private:
  // The correction of the row that a value carries most of.
  std::vector<double> nearest(bool without_check_rows) const {
    std::vector<double> values(values_of_.size(), 0), most(values_of_.size(), 0);
    for (const Told& row : told_) {
      if (without_check_rows && row.check) continue;
      double all = 0;
      for (const ExpertPart& part : row.parts) all += part.microseconds;
      for (const ExpertPart& part : row.parts) {
        if (part.microseconds / all <= most[part.value]) continue;
        most[part.value] = part.microseconds / all;
        values[part.value] = row.microseconds / all;
      }
    }
    return values;
  }

  // The weighted median of what the rows around say, all other values as they stand.
  double best_value(std::size_t value, const std::vector<double>& values, double start,
                    bool without_check_rows) const {
    std::vector<std::pair<double, double>> wishes = {{start, kPrior}};
    double all = kPrior;
    for (const std::size_t i : values_of_[value]) {
      const Told& row = told_[i];
      if (without_check_rows && row.check) continue;
      double others = 0, mine = 0;
      for (const ExpertPart& part : row.parts)
        (part.value == value ? mine : others) +=
            part.microseconds * (part.value == value ? 1 : values[part.value]);
      const double share = mine * values[value] / row.microseconds;
      if (share < kLeastShare || others >= row.microseconds * 0.98) continue;
      wishes.emplace_back((row.microseconds - others) / mine, std::min(1.0, share));
      all += wishes.back().second;
    }
    std::sort(wishes.begin(), wishes.end());
    double sum = 0;
    for (const auto& [wish, weight] : wishes)
      if ((sum += weight) >= all / 2) return wish;
    return start;
  }

  // Between two told values of one pair, where no row stands: on the line between their logarithms.
  void fill_gaps(std::vector<double>& values) const {
    for (std::size_t first = 0; first < values.size(); first += points_.size()) {
      std::size_t low = points_.size();
      for (std::size_t high = 0; high < points_.size(); ++high) {
        if (values[first + high] <= 0) continue;
        for (std::size_t i = low + 1; i < high; ++i) {
          const double weight = std::log(points_[i] / points_[low]) / std::log(points_[high] / points_[low]);
          values[first + i] =
              std::pow(values[first + low], 1 - weight) * std::pow(values[first + high], weight);
        }
        low = high;
      }
    }
  }

  std::vector<double> points_;
  std::vector<Told> told_;
  std::vector<std::vector<std::size_t>> values_of_;  // rows that a value tells
};

// From one row among a hundred experts to all of a long prefill on one: factors of `step` around one row.
std::vector<double> points_between(double low, double high, double step) {
  std::vector<double> points;
  double point = 1;
  while (point > low * (1 + 1e-9)) point /= step;
  for (; point < high * step * (1 - 1e-9); point *= step) points.push_back(point);
  return points;
}

// Factors of eight between grid points, or of four or two where that tells rows better that the fit did not
// see.
ExpertParts choose_points(const AnalyticModel& model, const ProfileTable& table,
                          const std::vector<const ExpertRow*>& rows) {
  double low = 1e300, high = 0;
  for (const ExpertRow* row : rows)
    for (const auto& load : *row->routings) {
      const double mean = ExpertParts::rows_of(load);
      low = std::min(low, mean);
      high = std::max(high, mean);
    }
  ExpertParts best(model, table, rows, points_between(low, high, 8));
  double least = Fit(best, rows).loss();
  for (const double step : {4.0, 2.0}) {
    ExpertParts finer(model, table, rows, points_between(low, high, step));
    const double loss = Fit(finer, rows).loss();
    if (loss >= kGain * least) continue;
    best = std::move(finer);
    least = loss;
  }
  return best;
}

// One site of a table; NaN where no row says anything.
std::vector<float> values_at(const ExpertParts& parts, const std::vector<double>& corrections,
                             std::size_t pair, bool up) {
  std::vector<float> values;
  for (std::size_t point = 0; point < parts.points().size(); ++point) {
    const double correction = corrections[pair * parts.points().size() + point];
    values.push_back(correction > 0
                         ? static_cast<float>(rounded(correction * parts.model_at(pair, point, up), 4))
                         : std::numeric_limits<float>::quiet_NaN());
  }
  return values;
}

void write_values(ProfileTable& table, bool narrow, const ExpertParts& parts,
                  const std::vector<double>& corrections) {
  std::map<std::vector<double>, std::vector<float>> sites;
  for (std::size_t pair = 0; pair < parts.pairs().size(); ++pair)
    for (const bool up : {true, false}) {
      const Shape shape = parts.pairs()[pair].shape(up);
      if (is_narrow(shape) == narrow)
        sites.try_emplace(
            {static_cast<double>(shape.groups), static_cast<double>(shape.n), static_cast<double>(shape.k)},
            values_at(parts, corrections, pair, up));
    }
  table.axes = {{ProfileKey::kRows, parts.points()}};
  for (auto& [site, values] : sites) {
    table.sites.push_back(site);
    table.microseconds.insert(table.microseconds.end(), values.begin(), values.end());
  }
}

}  // namespace

ProfileTable expert_table(const ProfileTable& draft, bool narrow) {
  ProfileTable table = draft;
  table.name = narrow ? "expert GEMMs, short reduction" : "expert GEMMs";
  table.kinds = {"grouped_gemm", "grouped_gemm_dgrad"};
  table.fitted = true;
  table.site_keys = {ProfileKey::kGroups, ProfileKey::kN, ProfileKey::kK};
  if (narrow) {
    table.where = {{ProfileKey::kK, 1, kWideReduction - 1}, {ProfileKey::kN, kWideReduction, 1e9}};
    table.rejected.clear();  // told once
  } else {
    table.where = {{ProfileKey::kK, kWideReduction, 1e9}};
  }
  return table;
}

std::vector<ProfileTable> fit_experts(const ExpertDraft& draft, const Accelerator& reference) {
  CHECK(!draft.rows.empty(), draft.table.stack);
  std::vector<const ExpertRow*> built;
  for (const ExpertRow& row : draft.rows)
    if (!row.kept_out) built.push_back(&row);
  if (built.empty()) return {};
  const AnalyticModel model(reference);
  const ExpertParts parts = choose_points(model, draft.table, built);
  const std::vector<double> corrections = Fit(parts, built).corrections(false);
  std::vector<ProfileTable> tables;
  for (const bool narrow : {false, true}) {
    ProfileTable table = expert_table(draft.table, narrow);
    write_values(table, narrow, parts, corrections);
    if (!table.sites.empty()) tables.push_back(std::move(table));
  }
  test_experts(tables, draft.rows, reference);
  return tables;
}

}  // namespace moebius
