#include "workloads/cost/measured_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hw/error.h"
#include "workloads/cost/fused_quantise.h"
#include "workloads/cost/profile_kinds.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

constexpr double kSame = 1e-9;  // of logarithms that are equal
// A correction holds to a factor of 4 from where it was measured and fades to none at 16, where a look-up
// ends (table.cpp): no cliff stands there.
constexpr double kHolds = 1.3862943611198906, kFaded = 2 * kHolds;
constexpr double kLeastValue = 1e-6;  // on an axis: less than one row an expert is a share of the experts

double logarithm(double value) {
  return std::log(std::max(1.0, value));
}

Cell find_cell(const std::vector<double>& points, double value) {
  const double slack = 1 + kSame;
  const std::size_t last = points.size() - 1;
  if (value <= points.front() * slack)
    return {0, 0, std::max(0.0, std::log(points.front() / std::max(value, kLeastValue)))};
  if (value * slack >= points.back()) return {last, last, std::max(0.0, std::log(value / points.back()))};
  const auto above = std::upper_bound(points.begin(), points.end(), value * slack);
  const auto high = static_cast<std::size_t>(above - points.begin());
  const bool on_point = value <= points[high - 1] * slack;
  return {high - 1, on_point ? high - 1 : high, 0};
}

// Kernels of attention are written for one width of heads and for so many of queries to one of keys; how many
// there are changes less.
constexpr double kOfWidth = 4;
double step_of(ProfileKey key) {
  return key == ProfileKey::kHeadDim || key == ProfileKey::kVDim ? kOfWidth : 1;
}

void weigh(std::array<Neighbour, kNeighbours>& near) {
  if (near[0].distance < kSame) {
    near[0].weight = 1;
    return;
  }
  double sum = 0;
  for (Neighbour& n : near) sum += n.weight = 1 / (n.distance * n.distance);
  for (Neighbour& n : near) n.weight /= sum;
}

// Passes of quantisation are all that kernels are known to contain.
int passes_of(const ProfileTable& table) {
  for (const std::string& name : table.includes)
    if (name != to_string(OpKind::kQuantise))
      throw input_error(fmt::format("profile table \"{}\": includes: expected \"{}\", found \"{}\"",
                                    table.name, to_string(OpKind::kQuantise), name));
  return static_cast<int>(table.includes.size());
}

// Products by heads (serving_ops.h): equal ones side by side, which need no routing.
bool is_of_heads(const CostQuery& query) {
  return query.kind == OpKind::kGroupedGemm && query.shape.heads > 0;
}

bool names_heads(const ProfileTable& table) {
  return std::any_of(table.where.begin(), table.where.end(),
                     [](const ProfileRange& range) { return range.key == ProfileKey::kHeads; });
}

// Nobody states kv: it changes with the queries.
bool follows_queries(const ProfileTable& table) {
  const auto is_kv = [](ProfileKey key) { return key == ProfileKey::kKv; };
  return std::none_of(table.site_keys.begin(), table.site_keys.end(), is_kv) &&
         std::none_of(table.axes.begin(), table.axes.end(),
                      [&](const auto& axis) { return is_kv(axis.key); });
}

}  // namespace

std::optional<OpKind> kind_of(std::string_view name) {
  for (int i = 0; i < kNumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (!is_communication(kind) && to_string(kind) == name) return kind;
  }
  return {};
}

Clocks clocks_of(const ProfileTable& table, double microseconds) {
  const bool limited = table.limited_from > 0 && microseconds >= table.limited_from;
  return table.sustained || limited ? Clocks::kSustained : Clocks::kBurst;
}

CostQuery query_of(const ProfileTable& table, OpKind kind, const Shape& shape) {
  return {.kind = kind,
          .shape = shape,
          .dtype = table.dtype,
          .cores = table.cores,
          .rows = {},
          .stored = table.stored,
          .fused_quantise = !table.includes.empty(),
          .hot = table.hot};
}

Shape shape_in(const ProfileTable& table, OpKind kind, const std::vector<double>& site,
               std::span<const double> at) {
  Shape shape;
  const bool follows = follows_queries(table);
  for (std::size_t i = 0; i < site.size(); ++i)
    shape = with_profile_key(table.site_keys[i], kind, shape, site[i], follows);
  if (is_attention(kind) && shape.groups == 0) shape.groups = 1;
  for (const ProfileRange& range : table.where) {
    const bool heads_alone = range.key == ProfileKey::kHeads && shape.heads == 0;
    if (range.low == range.high || heads_alone)
      shape = with_profile_key(range.key, kind, shape, range.low, follows);
  }
  for (std::size_t i = 0; i < at.size(); ++i)
    shape = with_profile_key(table.axes[i].key, kind, shape, at[i], follows);
  return shape;
}

MeasuredTable::MeasuredTable(const ProfileTable& table, const AnalyticModel& reference)
    : data_(table), reference_(&reference), grid_(table.grid_size()) {
  for (const std::string& kind : data_.kinds) kinds_.push_back(kind_named(kind, data_.name));
  low_.fill(1e300);
  for (const auto& site : data_.sites)
    for (std::size_t i = 0; i < site.size(); ++i) {
      site_logs_.push_back(logarithm(site[i]));
      low_[i] = std::min(low_[i], site_logs_.back());
      high_[i] = std::max(high_[i], site_logs_.back());
    }
  kv_follows_ = follows_queries(data_);
  passes_ = passes_of(data_);
  corrections_ = std::make_unique<std::atomic<float>[]>(data_.microseconds.size());
  if (reference_->engine().architecture->serial) fit_law();
}

void MeasuredTable::fit_law() {
  std::vector<MeasuredTerms> measured;
  for (std::size_t value = 0; value < data_.microseconds.size(); ++value) {
    if (std::isnan(data_.microseconds[value])) continue;
    const CostQuery query = query_of(data_, kinds_.front(), measured_shape(value));
    measured.push_back({serial_terms(reference_->engine(), query), data_.microseconds[value] * 1e-6});
  }
  law_ = fit_serial_law(measured);
}

double MeasuredTable::model_seconds(const AnalyticModel& chip, const CostQuery& query, Clocks clocks) const {
  const double model = whole_estimate(chip, query, passes_, clocks).seconds;
  if (!follows_law()) return model;
  const double there = whole_estimate(*reference_, query, passes_, clocks).seconds;
  return serial_seconds(law_, serial_terms(reference_->engine(), query)) * (model / there);
}

bool MeasuredTable::speaks_of(const CostQuery& query, const Shape& shape) const {
  if (query.dtype != data_.dtype || stored_dtype(query) != data_.stored.value_or(data_.dtype)) return false;
  if (std::find(kinds_.begin(), kinds_.end(), query.kind) == kinds_.end()) return false;
  if (is_of_heads(query) && !names_heads(data_)) return false;
  return std::all_of(data_.where.begin(), data_.where.end(), [&](const ProfileRange& range) {
    const double value = profile_key(range.key, query.kind, shape);
    return value >= range.low && value <= range.high;
  });
}

// Squared.
double MeasuredTable::apart(std::size_t site, const std::array<double, kMostProfileSiteKeys>& at) const {
  const std::size_t keys = data_.site_keys.size();
  double sum = 0, share = 0;  // of heads to those of keys
  bool of_keys = false;
  for (std::size_t i = 0; i < keys; ++i) {
    const ProfileKey key = data_.site_keys[i];
    const double step = site_logs_[site * keys + i] - at[i], far = step_of(key) * step;
    sum += far * far;
    if (key == ProfileKey::kHeads) share += step;
    if (key == ProfileKey::kKvHeads) share -= step, of_keys = true;
  }
  return of_keys ? sum + share * share : sum;
}

void MeasuredTable::find_neighbours(OpKind kind, const Shape& shape, Position& position) const {
  const std::size_t keys = data_.site_keys.size();
  std::array<double, kMostProfileSiteKeys> at{};
  for (std::size_t i = 0; i < keys; ++i) {
    at[i] = logarithm(profile_key(data_.site_keys[i], kind, shape));
    if (at[i] < low_[i] - kSame || at[i] > high_[i] + kSame) position.inside = false;
  }
  auto& near = position.near;
  for (std::size_t site = 0; site < data_.sites.size(); ++site) {
    const double distance = apart(site, at);
    if (distance >= near.back().distance) continue;
    std::size_t place = kNeighbours - 1;
    for (; place > 0 && near[place - 1].distance > distance; --place) near[place] = near[place - 1];
    near[place] = {site, distance, 0};
  }
  weigh(near);
  double nearest = 0;
  for (std::size_t i = 0; i < keys; ++i) nearest += std::pow(site_logs_[near[0].site * keys + i] - at[i], 2);
  position.distance = std::sqrt(nearest);
}

// How far a shape is beyond the end of an axis, in logarithms of the model's time: 2 rows of a GEMM and 64
// are the same tile and the same weights, and what was measured of the one is true of the other.
double MeasuredTable::time_beyond(std::size_t axis, std::size_t point, OpKind kind,
                                  const Shape& shape) const {
  const auto seconds = [&](const Shape& at) {
    return model_seconds(*reference_, query_of(data_, kind, at), clocks());
  };
  const Shape end =
      with_profile_key(data_.axes[axis].key, kind, shape, data_.axes[axis].points[point], kv_follows_);
  return std::abs(std::log(seconds(shape) / seconds(end)));
}

Position MeasuredTable::locate(OpKind kind, const Shape& shape) const {
  Position position;
  find_neighbours(kind, shape, position);
  position.exact = position.near[0].weight == 1;
  std::size_t grid_point = 0;
  for (std::size_t i = 0; i < data_.axes.size(); ++i) {
    Cell& cell = position.cells[i];
    const double value = profile_key(data_.axes[i].key, kind, shape);
    cell = find_cell(data_.axes[i].points, value);
    if (cell.outside > kSame) {
      position.inside = false;
      const double beyond = std::min(cell.outside, time_beyond(i, cell.low, kind, shape));
      // Behind the last point kernels go on as they do there, so that it is no farther than corrections hold.
      const bool behind = value > data_.axes[i].points.back();
      position.distance += behind ? std::min(beyond, kHolds) : beyond;
      // Experts of few rows have kernels of their own, other products the tile and the weights of more.
      if (value < data_.axes[i].points.front()) position.before += is_grouped(kind) ? cell.outside : beyond;
    }
    if (cell.low != cell.high) position.exact = false;
    grid_point = grid_point * data_.axes[i].points.size() + cell.low;
  }
  const std::size_t value = position.near[0].site * grid_ + grid_point;
  position.exact =
      position.exact && position.inside && !std::isnan(data_.microseconds[value]) && !data_.fitted;
  return position;
}

double MeasuredTable::axis_point(std::size_t value, std::size_t axis) const {
  std::size_t index = value % grid_;
  for (std::size_t i = data_.axes.size() - 1; i > axis; --i) index /= data_.axes[i].points.size();
  return data_.axes[axis].points[index % data_.axes[axis].points.size()];
}

// A hole takes the correction of the nearest measured value: of another site at the same grid point, or of
// its own site.
std::size_t MeasuredTable::donor_of(std::size_t value) const {
  if (!std::isnan(data_.microseconds[value])) return value;
  const std::size_t keys = data_.site_keys.size(), site = value / grid_;
  double best = 1e300;
  std::size_t donor = value;
  const auto offer = [&](std::size_t other, double distance) {
    if (std::isnan(data_.microseconds[other]) || distance >= best) return;
    best = distance;
    donor = other;
  };
  for (std::size_t other = 0; other < data_.sites.size(); ++other) {
    double distance = 0;
    for (std::size_t i = 0; i < keys; ++i)
      distance += std::pow(site_logs_[other * keys + i] - site_logs_[site * keys + i], 2);
    offer(other * grid_ + value % grid_, distance);
  }
  for (std::size_t other = site * grid_; other < (site + 1) * grid_; ++other) {
    double distance = 0;
    for (std::size_t i = 0; i < data_.axes.size(); ++i)
      distance += std::pow(std::log(axis_point(other, i) / axis_point(value, i)), 2);
    offer(other, distance);
  }
  return donor;
}

Shape MeasuredTable::measured_shape(std::size_t value) const {
  std::array<double, kMostProfileAxes> at{};
  for (std::size_t i = 0; i < data_.axes.size(); ++i) at[i] = axis_point(value, i);
  return shape_in(data_, kinds_.front(), data_.sites[value / grid_], {at.data(), data_.axes.size()});
}

double MeasuredTable::correction(std::size_t value) const {
  if (const float known = corrections_[value].load(std::memory_order_relaxed); known > 0) return known;
  const std::size_t donor = donor_of(value);
  const double us = data_.microseconds[donor];
  const CostQuery query = query_of(data_, kinds_.front(), measured_shape(donor));
  const double model = model_seconds(*reference_, query, clocks_of(data_, us));
  const auto correction = static_cast<float>(us * 1e-6 / model);
  corrections_[value].store(correction, std::memory_order_relaxed);
  return correction;
}

double MeasuredTable::correction(const Position& position, std::size_t grid_point) const {
  const double beyond = std::max(0.0, position.distance - kHolds);
  const double held = std::max(0.0, 1 - beyond / (kFaded - kHolds));
  if (position.near[0].weight == 1 && held == 1)
    return correction(position.near[0].site * grid_ + grid_point);
  double sum = 0;
  for (const Neighbour& n : position.near)
    if (n.weight > 0) sum += n.weight * std::log(correction(n.site * grid_ + grid_point));
  // Not faster than the time grows meanwhile: more work would seem to take less.
  return std::exp(sum > 0 ? std::max(held * sum, sum - beyond) : held * sum);
}

}  // namespace moebius
