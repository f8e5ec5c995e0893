#include "workloads/serving/system/step_surface.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "workloads/routing/routing.h"

namespace moebius {
namespace {

struct Between {  // two edges, and how far from the lower to the upper
  double low = 0, high = 0, share = 0;
};

Between between(double low, double high, double value) {
  return {low, high, high > low ? (value - low) / (high - low) : 0};
}

// 0, 1, 2, 3, 4, 6, 8, 12, ...
Between around_count(std::int64_t value) {
  if (value <= 2) return between(static_cast<double>(value), static_cast<double>(value), 0);
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value)));
  const std::int64_t middle = below + below / 2;
  if (value < middle) return between(static_cast<double>(below), static_cast<double>(middle), value);
  if (value == middle) return between(value, value, value);
  return between(static_cast<double>(middle), static_cast<double>(2 * below), value);
}

// 1, 4, 16, 64, ...; the edge itself where the value is one.
Between around_keys(std::int64_t value) {
  if (value <= 1) return between(value, value, value);
  std::int64_t edge = 1;
  while (edge * 4 <= value) edge *= 4;
  if (edge == value) return between(value, value, value);
  return between(edge, edge * 4, value);
}

Between around_ratio(double value) {
  if (value < 1) {
    const double low = std::floor(value * 4) / 4;
    return between(low, low == value ? low : low + 0.25, value);
  }
  const double low = std::exp2(std::floor(std::log2(value)));
  return between(low, low == value ? low : 2 * low, value);
}

}  // namespace

std::size_t StepSurface::Hash::operator()(const StepPoint& point) const {
  std::uint64_t hash = std::bit_cast<std::uint64_t>(point.others);
  for (const std::int64_t part :
       {point.prefill_tokens, point.prefill_keys, point.decode_sequences, point.decode_keys})
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
  return hash;
}

StepPoint point_of(const StepShape& shape, double others) {
  const auto mean = [](std::int64_t sum, std::int64_t count) { return count == 0 ? 0 : (sum + count / 2) / count; };
  return {shape.prefill_tokens, mean(shape.prefill_pairs, shape.prefill_tokens), shape.decode_sequences,
          mean(shape.decode_context, shape.decode_sequences), others};
}

double StepSurface::corner(const StepPoint& point) {
  const auto known = known_.find(point);
  if (known != known_.end()) return known->second;
  return known_[point] = measure_(point);
}

// At most two corners along each of five coordinates; one where the point stands on an edge.
double StepSurface::at(const StepPoint& point) {
  const std::array<Between, 5> around{around_count(point.prefill_tokens), around_keys(point.prefill_keys),
                                      around_count(point.decode_sequences), around_keys(point.decode_keys),
                                      around_ratio(point.others)};
  double sum = 0;
  for (unsigned choice = 0; choice < 32; ++choice) {
    double weight = 1;
    std::array<double, 5> edge{};
    for (unsigned c = 0; c < 5; ++c) {
      const bool high = (choice >> c & 1) != 0;
      weight *= high ? around[c].share : 1 - around[c].share;
      edge[c] = high ? around[c].high : around[c].low;
    }
    if (weight == 0) continue;
    const auto whole = [&](int c) { return static_cast<std::int64_t>(edge[c]); };
    sum += weight * corner({whole(0), whole(1), whole(2), whole(3), edge[4]});
  }
  return sum;
}

double StepSurface::of_replica(const StepShape& own, std::int64_t rows_of_others, int others) {
  const double ratio = others == 0 ? 1
                                   : static_cast<double>(rows_of_others) / others /
                                         static_cast<double>(std::max<std::int64_t>(1, own.rows()));
  const StepPoint point = point_of(own, ratio);
  sample(point);
  return at(point);
}

// Algorithm R (Vitter 1985), with numbers that depend on nothing but the count.
void StepSurface::sample(const StepPoint& point) {
  ++asked_;
  if (asked_ <= kSampled) {
    sampled_.push_back(point);
    return;
  }
  const auto place = static_cast<std::int64_t>(random_bits(0x73757266, asked_) % asked_);
  if (place < kSampled) sampled_[place] = point;
}

SurfaceError StepSurface::error() {
  std::vector<double> errors;
  for (const StepPoint& point : sampled_) errors.push_back(std::abs(at(point) / measure_(point) - 1));
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  const auto place = [&](double share) { return errors[static_cast<std::size_t>(share * (errors.size() - 1))]; };
  return {static_cast<std::int64_t>(errors.size()), place(0.5), place(0.9), errors.back()};
}

double StepSurface::seconds(std::span<const StepShape> replicas) {
  const StepShape *rows = &replicas[0], *keys = &replicas[0];
  std::int64_t sum = 0;
  for (const StepShape& shape : replicas) {
    sum += shape.rows();
    if (shape.rows() > rows->rows()) rows = &shape;
    if (shape.prefill_pairs + shape.decode_context > keys->prefill_pairs + keys->decode_context) keys = &shape;
  }
  const int others = static_cast<int>(replicas.size()) - 1;
  const double most_rows = of_replica(*rows, sum - rows->rows(), others);
  if (keys == rows) return most_rows;
  return std::max(most_rows, of_replica(*keys, sum - keys->rows(), others));
}

}  // namespace moebius
