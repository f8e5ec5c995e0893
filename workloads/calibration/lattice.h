// Measured rows of one table on the lattice of all sizes that occur, with the analytic model's times at its
// points. Part of the fit (fit_table.h).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/calibration/condense.h"
#include "workloads/cost/analytic.h"

namespace moebius {

inline constexpr std::size_t kMostFitAxes = 3;

// Where a point stands, or would, among ascending ones.
std::size_t index_in(const std::vector<double>& points, double point);

struct LatticeRow {
  std::size_t site = 0;
  std::array<std::size_t, kMostFitAxes> at{};  // indices into the axes' points
  double microseconds = 0;
  Clocks clocks = Clocks::kBurst;  // under which it was measured
  bool check = false;              // kept from a fit that is to be judged
};

// The points of each axis, as indices, that a grid keeps; ascending.
using GridPoints = std::vector<std::vector<std::size_t>>;

class Lattice {
 public:
  // `table` names keys, kinds and conditions. Rows whose hash of the rest says so are check rows.
  Lattice(const ProfileTable& table, const std::vector<MeasuredRow>& rows, const AnalyticModel& model);

  const std::vector<std::vector<double>>& sites() const { return sites_; }
  const std::vector<std::vector<double>>& axes() const { return axes_; }
  const std::vector<LatticeRow>& rows() const { return rows_; }
  // Microseconds that the model says; evaluated once.
  double model(std::size_t site, const std::array<std::size_t, kMostFitAxes>& at, Clocks clocks) const;
  // The time that a correction of the model stands for: under the clocks that a kernel of such a time has.
  double corrected(std::size_t site, const std::array<std::size_t, kMostFitAxes>& at,
                   double correction) const;
  // Of the upper of two points of an axis, for a row between them: as a look-up weighs them (table.cpp).
  double weight(const LatticeRow& row, std::size_t axis, std::size_t low, std::size_t high) const;

 private:
  std::size_t place(std::size_t site, const std::array<std::size_t, kMostFitAxes>& at) const;

  const ProfileTable& table_;
  const AnalyticModel& analytic_;
  std::vector<std::vector<double>> sites_, axes_;
  std::vector<LatticeRow> rows_;
  mutable std::array<std::vector<double>, 2> model_;  // by clocks; zero: not asked for yet
};

// `count` points of an axis between which interpolation loses least: by dynamic programming over all
// segments, summed over all rows. Fewer when the axis has fewer.
std::vector<std::vector<std::size_t>> best_points(const Lattice& lattice, std::size_t axis,
                                                  const std::vector<std::size_t>& counts);

}  // namespace moebius
