#include "workloads/calibration/lattice.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "workloads/calibration/fit_rules.h"
#include "workloads/cost/fused_quantise.h"
#include "workloads/cost/measured_table.h"

namespace moebius {
namespace {

template <typename T>
void sort_once(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Rows of one site that differ in one axis alone, ascending.
using Line = std::vector<const LatticeRow*>;

std::vector<Line> lines_along(const Lattice& lattice, std::size_t axis) {
  std::map<std::pair<std::size_t, std::array<std::size_t, kMostFitAxes>>, Line> lines;
  for (const LatticeRow& row : lattice.rows()) {
    auto rest = row.at;
    rest[axis] = 0;
    lines[{row.site, rest}].push_back(&row);
  }
  std::vector<Line> sorted;
  for (auto& [key, line] : lines) {
    std::sort(line.begin(), line.end(), [&](auto* a, auto* b) { return a->at[axis] < b->at[axis]; });
    sorted.push_back(std::move(line));
  }
  return sorted;
}

// What the rows between two of a line lose when they are interpolated.
double segment_loss(const Lattice& lattice, std::size_t axis, const Line& line, std::size_t a,
                    std::size_t b) {
  const double low = line[a]->microseconds, high = line[b]->microseconds;
  // What a kernel of the end takes under the clocks of another row.
  const auto moved = [&](const LatticeRow& end, double us, Clocks clocks) {
    if (end.clocks == clocks) return us;
    return us * lattice.model(end.site, end.at, clocks) / lattice.model(end.site, end.at, end.clocks);
  };
  double loss = 0;
  for (std::size_t i = a + 1; i < b; ++i) {
    const double w = lattice.weight(*line[i], axis, line[a]->at[axis], line[b]->at[axis]);
    const Clocks clocks = line[i]->clocks;
    const double told = (1 - w) * moved(*line[a], low, clocks) + w * moved(*line[b], high, clocks);
    loss += std::min(kMostLossOfRow, std::abs(std::log(told / line[i]->microseconds)));
  }
  return loss;
}

// [low][high]: the loss of all lines between two points; a line without a row at an end takes its nearest row
// inside.
std::vector<std::vector<double>> losses_along(const Lattice& lattice, std::size_t axis) {
  const std::size_t points = lattice.axes()[axis].size();
  std::vector<std::vector<double>> losses(points, std::vector<double>(points, 0));
  for (const Line& line : lines_along(lattice, axis)) {
    for (std::size_t a = 0; a < line.size(); ++a) {
      const std::size_t least = a == 0 ? 0 : line[a - 1]->at[axis] + 1;
      for (std::size_t b = a + 1; b < line.size(); ++b) {
        const std::size_t most = b + 1 == line.size() ? points - 1 : line[b + 1]->at[axis] - 1;
        const double loss = b > a + 1 ? segment_loss(lattice, axis, line, a, b) : 0;
        for (std::size_t low = least; low <= line[a]->at[axis]; ++low)
          for (std::size_t high = line[b]->at[axis]; high <= most; ++high) losses[low][high] += loss;
      }
    }
  }
  return losses;
}

}  // namespace

std::size_t index_in(const std::vector<double>& points, double point) {
  return static_cast<std::size_t>(std::lower_bound(points.begin(), points.end(), point) - points.begin());
}

Lattice::Lattice(const ProfileTable& table, const std::vector<MeasuredRow>& rows, const AnalyticModel& model)
    : table_(table), analytic_(model), axes_(table.axes.size()) {
  for (const MeasuredRow& row : rows) {
    sites_.push_back(row.site);
    for (std::size_t i = 0; i < axes_.size(); ++i) axes_[i].push_back(row.at[i]);
  }
  sort_once(sites_);
  for (auto& axis : axes_) sort_once(axis);
  for (const MeasuredRow& row : rows) {
    LatticeRow placed{.microseconds = row.microseconds,
                      .clocks = clocks_of(table, row.microseconds),
                      .check = is_check_row(row)};
    placed.site =
        static_cast<std::size_t>(std::lower_bound(sites_.begin(), sites_.end(), row.site) - sites_.begin());
    for (std::size_t i = 0; i < axes_.size(); ++i) placed.at[i] = index_in(axes_[i], row.at[i]);
    rows_.push_back(placed);
  }
  std::size_t size = sites_.size();
  for (const auto& axis : axes_) size *= axis.size();
  for (auto& known : model_) known.assign(size, 0);
}

std::size_t Lattice::place(std::size_t site, const std::array<std::size_t, kMostFitAxes>& at) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) site = site * axes_[i].size() + at[i];
  return site;
}

double Lattice::model(std::size_t site, const std::array<std::size_t, kMostFitAxes>& at,
                      Clocks clocks) const {
  double& known = model_[clocks == Clocks::kBurst ? 0 : 1][place(site, at)];
  if (known > 0) return known;
  std::array<double, kMostFitAxes> sizes{};
  for (std::size_t i = 0; i < axes_.size(); ++i) sizes[i] = axes_[i][at[i]];
  const OpKind kind = *kind_of(table_.kinds.front());
  const CostQuery query =
      query_of(table_, kind, shape_in(table_, kind, sites_[site], {sizes.data(), axes_.size()}));
  const auto passes = static_cast<int>(table_.includes.size());
  return known = whole_estimate(analytic_, query, passes, clocks).seconds * 1e6;
}

double Lattice::corrected(std::size_t site, const std::array<std::size_t, kMostFitAxes>& at,
                          double correction) const {
  const double burst = correction * model(site, at, Clocks::kBurst);
  return clocks_of(table_, burst) == Clocks::kBurst ? burst
                                                    : correction * model(site, at, Clocks::kSustained);
}

double Lattice::weight(const LatticeRow& row, std::size_t axis, std::size_t low, std::size_t high) const {
  auto at = row.at;
  at[axis] = low;
  const double below = model(row.site, at, row.clocks);
  at[axis] = high;
  const double above = model(row.site, at, row.clocks);
  if (above > below * (1 + 1e-9))
    return std::clamp((model(row.site, row.at, row.clocks) - below) / (above - below), 0.0, 1.0);
  const auto& points = axes_[axis];
  return std::log(points[row.at[axis]] / points[low]) / std::log(points[high] / points[low]);
}

std::vector<std::vector<std::size_t>> best_points(const Lattice& lattice, std::size_t axis,
                                                  const std::vector<std::size_t>& counts) {
  const auto losses = losses_along(lattice, axis);
  const std::size_t points = losses.size();
  // [points used][last point]: the least loss so far, and the point before.
  std::vector<std::vector<double>> least(points + 1, std::vector<double>(points, 1e300));
  std::vector<std::vector<std::size_t>> before(points + 1, std::vector<std::size_t>(points, 0));
  least[1][0] = 0;
  for (std::size_t used = 2; used <= points; ++used)
    for (std::size_t last = 1; last < points; ++last)
      for (std::size_t previous = 0; previous < last; ++previous) {
        const double loss = least[used - 1][previous] + losses[previous][last];
        if (loss >= least[used][last]) continue;
        least[used][last] = loss;
        before[used][last] = previous;
      }
  std::vector<std::vector<std::size_t>> chosen;
  for (const std::size_t wanted : counts) {
    std::size_t used = std::min(wanted, points), last = points - 1;
    std::vector<std::size_t> grid(used);
    for (; used > 0; last = before[used--][last]) grid[used - 1] = last;
    chosen.push_back(std::move(grid));
  }
  return chosen;
}

}  // namespace moebius
