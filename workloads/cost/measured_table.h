// One table of a profile, ready for look-ups: op kinds resolved, logarithms taken. Part of MeasuredTables
// (table.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hw/profile.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/serial_law.h"

namespace moebius {

inline constexpr std::size_t kMostProfileAxes = 3,
                             kMostProfileSiteKeys = 8;  // as the profile's reader allows
inline constexpr int kNeighbours = 4;                   // sites that are mixed where none is exact

// The points of an axis on both sides of a value; equal when it is on a point or beyond the last one.
struct Cell {
  std::size_t low = 0, high = 0;
  double outside = 0;  // how far beyond the axis, in logarithms
};

struct Neighbour {
  std::size_t site = 0;
  double distance = 1e300;  // squared, in logarithms
  double weight = 0;        // by inverse distance to the fourth; the weights add up to one
};

// What the rows of a table were asked: the kernel of `shape`, with all that the measured times contain.
CostQuery query_of(const ProfileTable& table, OpKind kind, const Shape& shape);

// Where a shape stands in a table.
struct Position {
  std::array<Neighbour, kNeighbours> near;
  std::array<Cell, kMostProfileAxes> cells;
  double distance = 0;  // from the nearest site, in logarithms of sizes; from the grid, or in those of times
  double before = 0;    // before the first points of axes: of that distance, of experts in sizes
  bool inside = true;   // of the axes and of the box around the sites
  bool exact = true;    // on a site and a grid point that was measured
};

// The shape at a site and a point of the axes; ranges of the table that are one number are set, too.
Shape shape_in(const ProfileTable& table, OpKind kind, const std::vector<double>& site,
               std::span<const double> at);

// The clocks under which a kernel of the table was measured that took so long.
Clocks clocks_of(const ProfileTable& table, double microseconds);

// The compute kind that to_string(OpKind) calls so.
std::optional<OpKind> kind_of(std::string_view name);

class MeasuredTable {
 public:
  // `reference` must outlive the table. input_error for op kinds that do not exist.
  MeasuredTable(const ProfileTable& table, const AnalyticModel& reference);

  bool speaks_of(const CostQuery& query, const Shape& shape) const;
  Position locate(OpKind kind, const Shape& shape) const;

  // The time that corrections are of: the analytic model's or, of a serial chip, the law fitted to this
  // table, carried from the chip of the measurement to `chip` as the analytic model says.
  double model_seconds(const AnalyticModel& chip, const CostQuery& query, Clocks clocks) const;
  bool follows_law() const { return !(law_ == SerialTerms{}); }

  // Measured time over the model's, on the chip, cores and clocks of the measurement, at a value of the
  // table.
  double correction(std::size_t value) const;
  // The same at a grid point, of the sites near a position; fading with the distance from them.
  double correction(const Position& position, std::size_t grid_point) const;

  const ProfileTable& data() const { return data_; }
  const std::vector<OpKind>& kinds() const { return kinds_; }
  Clocks clocks() const { return data_.sustained ? Clocks::kSustained : Clocks::kBurst; }
  bool kv_follows() const { return kv_follows_; }
  int passes() const { return passes_; }  // of quantisation that the measured times contain
  Shape measured_shape(std::size_t value) const;

  const AnalyticModel& reference() const { return *reference_; }  // the chip that was measured

 private:
  std::size_t donor_of(std::size_t value) const;
  double time_beyond(std::size_t axis, std::size_t point, OpKind kind, const Shape& shape) const;
  void find_neighbours(OpKind kind, const Shape& shape, Position& position) const;
  double apart(std::size_t site, const std::array<double, kMostProfileSiteKeys>& at) const;
  void fit_law();
  double axis_point(std::size_t value, std::size_t axis) const;

  ProfileTable data_;
  const AnalyticModel* reference_;
  std::vector<OpKind> kinds_;
  int passes_ = 0;
  std::size_t grid_ = 1;
  SerialTerms law_ = {};                                     // all zero: there is none
  bool kv_follows_ = true;                                   // kv is no key: it changes with the queries
  std::vector<double> site_logs_;                            // [site][key]
  std::array<double, kMostProfileSiteKeys> low_{}, high_{};  // the box around the sites
  // Corrections once asked for; zero before. Threads may ask at once: they store the same number.
  std::unique_ptr<std::atomic<float>[]> corrections_;
};

}  // namespace moebius
