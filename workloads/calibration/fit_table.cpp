#include "workloads/calibration/fit_table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "hw/error.h"
#include "workloads/calibration/fit_rules.h"
#include "workloads/calibration/grid_holes.h"
#include "workloads/calibration/lattice.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr double kPrice = 0.08;  // a grid of twice the values must lose a twentieth less than the smaller one
constexpr double kSmall = 2000;  // values: so few cost nothing
constexpr double kNegligible = 0.0005;  // of mean loss
// Kernels that are chosen by size take no three times as long as those with more work (of 42,383 rows of
// TensorRT-LLM's decoding on H100 32 take twice as long); slower rows stand alone: 36 of 283,000 of four
// chips.
constexpr double kHeldUp = 3;
constexpr int kLeastFaster = 2;
const std::vector<std::size_t> kCounts = {3, 4, 5, 6, 8, 10, 12, 14, 18, 24, 32};

struct Part {
  std::size_t value = 0;  // of the grid
  double microseconds =
      0;  // of the model there, times the weight: a row's time is the sum of these times corrections
};

// A grid laid over a lattice, and the corrections of the model at its points.
class GridFit {
 public:
  GridFit(const Lattice& lattice, GridPoints points) : lattice_(lattice), points_(std::move(points)) {
    for (const auto& axis : points_) grid_ *= axis.size();
    parts_.reserve(lattice.rows().size());
    for (const LatticeRow& row : lattice.rows()) parts_.push_back(parts_of(row));
  }

  // Zero at sites that no row says anything of.
  std::vector<double> corrections(bool without_check_rows) const {
    std::vector<std::vector<std::size_t>> rows_of(lattice_.sites().size() * grid_);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (without_check_rows && lattice_.rows()[i].check) continue;
      for (const Part& part : parts_[i]) rows_of[part.value].push_back(i);
    }
    const std::vector<double> start = nearest(rows_of);
    std::vector<double> values = start;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      double moved = 0;
      for (std::size_t value = 0; value < values.size(); ++value) {
        if (values[value] <= 0) continue;
        const double better = best_value(value, rows_of[value], values, start[value]);
        moved = std::max(moved, std::abs(better / values[value] - 1));
        values[value] = better;
      }
      if (moved < 1e-6) break;
    }
    fill_holes(values, axis_sizes());
    return values;
  }

  // Mean loss on check rows of the fit that did not see them.
  double loss() const {
    const std::vector<double> values = corrections(true);
    double sum = 0;
    int rows = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const LatticeRow& row = lattice_.rows()[i];
      if (!row.check) continue;
      const double told = told_by(parts_[i], values);
      ++rows;
      sum += told > 0 ? std::min(kMostLossOfRow, std::abs(told / row.microseconds - 1)) : kMostLossOfRow;
    }
    return rows > 0 ? sum / rows : 0;
  }

  const GridPoints& points() const { return points_; }
  std::size_t grid() const { return grid_; }
  double microseconds_at(std::size_t value, double correction) const {
    std::array<std::size_t, kMostFitAxes> at{};
    std::size_t index = value % grid_;
    for (std::size_t i = points_.size(); i-- > 0; index /= points_[i].size())
      at[i] = points_[i][index % points_[i].size()];
    return lattice_.corrected(value / grid_, at, correction);
  }

 private:
  std::vector<std::size_t> axis_sizes() const {
    std::vector<std::size_t> sizes;
    for (const auto& axis : points_) sizes.push_back(axis.size());
    return sizes;
  }

  // The corners of the cell that a row stands in, as a look-up mixes them. Beyond the grid nothing is told.
  std::vector<Part> parts_of(const LatticeRow& row) const {
    std::array<std::size_t, kMostFitAxes> low{}, high{};
    std::array<double, kMostFitAxes> weight{};
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const auto above = std::lower_bound(points_[i].begin(), points_[i].end(), row.at[i]);
      high[i] = static_cast<std::size_t>(above - points_[i].begin());
      low[i] = *above == row.at[i] ? high[i] : high[i] - 1;
      if (low[i] != high[i]) weight[i] = lattice_.weight(row, i, points_[i][low[i]], points_[i][high[i]]);
    }
    std::vector<Part> parts;
    for (std::size_t corner = 0; corner < std::size_t{1} << points_.size(); ++corner) {
      double share = 1;
      std::size_t value = row.site;
      std::array<std::size_t, kMostFitAxes> at = row.at;
      for (std::size_t i = 0; i < points_.size(); ++i) {
        const bool upper = (corner >> i & 1) != 0;
        share *= upper ? weight[i] : 1 - weight[i];
        value = value * points_[i].size() + (upper ? high[i] : low[i]);
        at[i] = points_[i][upper ? high[i] : low[i]];
      }
      if (share > 0) parts.push_back({value, share * lattice_.model(row.site, at, row.clocks)});
    }
    return parts;
  }

  static double told_by(const std::vector<Part>& parts, const std::vector<double>& values) {
    double sum = 0;
    for (const Part& part : parts) {
      if (values[part.value] <= 0) return 0;
      sum += part.microseconds * values[part.value];
    }
    return sum;
  }

  // The correction of the row that a value carries most of.
  std::vector<double> nearest(const std::vector<std::vector<std::size_t>>& rows_of) const {
    std::vector<double> values(rows_of.size(), 0);
    for (std::size_t value = 0; value < rows_of.size(); ++value) {
      double most = 0;
      for (const std::size_t i : rows_of[value]) {
        double all = 0, mine = 0;
        for (const Part& part : parts_[i]) {
          all += part.microseconds;
          if (part.value == value) mine = part.microseconds;
        }
        if (mine / all <= most) continue;
        most = mine / all;
        values[value] = lattice_.rows()[i].microseconds / all;
      }
    }
    return values;
  }

  // The weighted median of what the rows around say, all other values as they stand.
  double best_value(std::size_t value, const std::vector<std::size_t>& rows,
                    const std::vector<double>& values, double start) const {
    std::vector<std::pair<double, double>> wishes = {{start, kPrior}};
    double all = kPrior;
    for (const std::size_t i : rows) {
      const double us = lattice_.rows()[i].microseconds;
      double others = 0, mine = 0;
      for (const Part& part : parts_[i])
        (part.value == value ? mine : others) +=
            part.microseconds * (part.value == value ? 1 : values[part.value]);
      const double share = mine * values[value] / us;
      if (share < kLeastShare || others >= us * 0.98) continue;
      wishes.emplace_back((us - others) / mine, std::min(1.0, share));
      all += wishes.back().second;
    }
    std::sort(wishes.begin(), wishes.end());
    double sum = 0;
    for (const auto& [wish, weight] : wishes)
      if ((sum += weight) >= all / 2) return wish;
    return start;
  }

  const Lattice& lattice_;
  GridPoints points_;
  std::size_t grid_ = 1;
  std::vector<std::vector<Part>> parts_;  // of each row
};

// A profile is read whole at every start.
double price_of(std::size_t values) {
  return std::pow(std::max(kSmall, static_cast<double>(values)) / kSmall, kPrice);
}

// One axis after the other, the others as they stand, twice; at first all have a middling number of points.
GridPoints choose_points(const Lattice& lattice) {
  constexpr std::size_t kMiddling = 4;  // of kCounts: eight points
  std::vector<std::vector<std::vector<std::size_t>>> choices;
  GridPoints points;
  for (std::size_t axis = 0; axis < lattice.axes().size(); ++axis) {
    choices.push_back(best_points(lattice, axis, kCounts));
    points.push_back(choices.back()[kMiddling]);
  }
  for (std::size_t turn = 0; turn < 2 * points.size(); ++turn) {
    const std::size_t axis = turn % points.size();
    if (turn > 0 && points.size() == 1) break;
    double least = 1e300;
    GridPoints best = points;
    for (const auto& choice : choices[axis]) {
      if (&choice != choices[axis].data() && choice.size() == best[axis].size()) continue;
      points[axis] = choice;
      const GridFit fit(lattice, points);
      const double loss = fit.loss() * price_of(lattice.sites().size() * fit.grid());
      if (loss >= least - kNegligible) continue;
      least = loss;
      best[axis] = choice;
    }
    points = best;
  }
  return points;
}

void write_values(ProfileTable& table, const Lattice& lattice, const GridFit& fit) {
  table.sites = lattice.sites();
  for (std::size_t i = 0; i < table.axes.size(); ++i) {
    table.axes[i].points.clear();
    for (const std::size_t point : fit.points()[i]) table.axes[i].points.push_back(lattice.axes()[i][point]);
  }
  const std::vector<double> corrections = fit.corrections(false);
  table.microseconds.clear();
  for (std::size_t value = 0; value < corrections.size(); ++value)
    table.microseconds.push_back(
        corrections[value] > 0
            ? static_cast<float>(rounded(fit.microseconds_at(value, corrections[value]), 3))
            : std::numeric_limits<float>::quiet_NaN());
}

// Shapes measured several times, some with two kernels, become one row: the median, of two the faster. It is
// kept out when its first row is.
void join_repeats(TableDraft& draft) {
  std::map<std::pair<std::vector<double>, std::vector<double>>, std::vector<const MeasuredRow*>> shapes;
  for (const MeasuredRow& row : draft.rows) shapes[{row.site, row.at}].push_back(&row);
  std::vector<MeasuredRow> joined;
  for (auto& [shape, rows] : shapes) {
    joined.push_back(*rows.front());
    std::vector<double> times;
    for (const MeasuredRow* row : rows) times.push_back(row->microseconds);
    const std::size_t middle = (times.size() - 1) / 2;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(middle), times.end());
    joined.back().microseconds = times[middle];
  }
  const auto repeats = static_cast<int>(draft.rows.size() - joined.size());
  if (repeats > 0)
    draft.table.rejected.push_back(
        {repeats,
         "the shape was measured again, or by another kernel: the median stands, of two the faster"});
  draft.rows = std::move(joined);
}

// Rows that beat the bound of the chip: the replays found their operands in the cache, where a real step does
// not.
void reject_impossible(TableDraft& draft, const Accelerator& chip) {
  const OpKind kind = *kind_of(draft.table.kinds.front());
  int memory = 0, arithmetic = 0;
  std::erase_if(draft.rows, [&](const MeasuredRow& row) {
    const Roofline bound =
        roofline(chip, query_of(draft.table, kind, shape_in(draft.table, kind, row.site, row.at)));
    if (bound.seconds() * 1e6 <= row.microseconds) return false;
    ++(bound.memory > bound.arithmetic ? memory : arithmetic);
    return true;
  });
  if (memory > 0)
    draft.table.rejected.push_back({memory, "faster than the device memory's full rate: served from L2"});
  if (arithmetic > 0) draft.table.rejected.push_back({arithmetic, "faster than the peak of the chip"});
}

// Rows in which something else held the machine up: a fit cannot see it where a value has one row.
void reject_held_up(TableDraft& draft) {
  std::map<std::vector<double>, std::vector<const MeasuredRow*>> sites;
  for (const MeasuredRow& row : draft.rows) sites[row.site].push_back(&row);
  const auto contradicts = [](const MeasuredRow& row, const MeasuredRow& other) {
    return row.microseconds >= kHeldUp * other.microseconds &&
           std::equal(other.at.begin(), other.at.end(), row.at.begin(), std::greater_equal<>());
  };
  std::vector<MeasuredRow> kept;
  for (const MeasuredRow& row : draft.rows) {
    const auto& others = sites[row.site];
    const auto faster = std::count_if(others.begin(), others.end(),
                                      [&](const MeasuredRow* other) { return contradicts(row, *other); });
    if (faster < kLeastFaster) kept.push_back(row);
  }
  const auto held_up = static_cast<int>(draft.rows.size() - kept.size());
  if (held_up > 0)
    draft.table.rejected.push_back(
        {held_up, "three times as slow as two rows of the same kernel with no less of anything: held up"});
  draft.rows = std::move(kept);
}

}  // namespace

ProfileTable fit_table(TableDraft draft, const Accelerator& reference) {
  CHECK(!draft.rows.empty(), draft.table.name);
  join_repeats(draft);
  reject_impossible(draft, reference);
  reject_held_up(draft);
  std::vector<MeasuredRow> built, kept_out;
  const bool tests = draft.rows.size() >= kLeastRowsToTest;
  for (const MeasuredRow& row : draft.rows) (tests && is_kept_out(row) ? kept_out : built).push_back(row);
  if (built.empty()) return draft.table;
  const AnalyticModel model(reference);
  draft.table.fitted = true;
  const Lattice lattice(draft.table, built, model);
  write_values(draft.table, lattice, GridFit(lattice, choose_points(lattice)));
  if (!kept_out.empty()) draft.table.held_out = test_table(draft.table, kept_out, reference);
  return draft.table;
}

}  // namespace moebius
