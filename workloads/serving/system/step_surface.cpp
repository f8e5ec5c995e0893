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

// 0, 1, 2, and steps of a power of two over `parts` above: with 2 parts 3, 4, 6, 8, 12, ...
Between around_count(std::int64_t value, std::int64_t parts) {
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value)));
  const std::int64_t step = std::max<std::int64_t>(1, below / parts);
  const std::int64_t low = value / step * step;
  return between(static_cast<double>(low), static_cast<double>(low == value ? low : low + step), value);
}

// 1, 16, 256, ... for a step of 16, with halves between for one of 2; the edge itself where the value is one.
Between around_keys(std::int64_t value, std::int64_t step) {
  if (step == 2) return around_count(value, 2);
  if (value <= 1) return between(value, value, value);
  std::int64_t edge = 1;
  while (edge * step <= value) edge *= step;
  if (edge == value) return between(value, value, value);
  return between(edge, edge * step, value);
}

Between around_ratio(double value) {
  if (value == 1) return {1, 1, 0};  // a replica alone
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
       {point.prefill_tokens, point.prefill_keys, point.decode_sequences, point.decode_keys, point.fillers})
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
  if (point.absorbed) hash ^= 0x94d049bb133111ebu;
  return point.eager ? ~hash : hash;
}

StepPoint point_of(const StepShape& shape, double others) {
  const auto mean = [](std::int64_t sum, std::int64_t count) {
    return count == 0 ? 0 : (sum + count / 2) / count;
  };
  return {.prefill_tokens = shape.prefill_tokens,
          .prefill_keys = mean(shape.prefill_pairs, shape.prefill_tokens),
          .decode_sequences = shape.decode_sequences,
          .decode_keys = mean(shape.decode_context, shape.decode_sequences),
          .others = others,
          .eager = shape.eager,
          .absorbed = shape.absorbed};
}

StepPoint point_of(const StepShape& own, std::span<const StepShape> replicas) {
  std::int64_t rows = 0, fillers = 0;
  for (const StepShape& shape : replicas) rows += shape.rows(), fillers += shape.fillers;
  const auto count = static_cast<std::int64_t>(replicas.size());
  const double of_another =
      count == 1 ? 0 : static_cast<double>(rows - own.rows()) / static_cast<double>(count - 1);
  StepPoint point =
      point_of(own, count == 1 ? 1 : of_another / static_cast<double>(std::max<std::int64_t>(1, own.rows())));
  point.fillers = (fillers + count / 2) / count;
  return point;
}

const StepTime& StepSurface::corner(const StepPoint& point) {
  const auto known = known_.find(point);
  if (known != known_.end()) return known->second;
  return known_[point] = measure_(point);
}

// Sequences grow by a token an iteration, and the next one is mostly in the cell of one just before.
StepSurface::Cell& StepSurface::cell_at(const StepPoint& lowest) {
  Recent& recent = recent_[Hash()(lowest) % recent_.size()];
  if (recent.cell == nullptr || !(recent.lowest == lowest)) recent = {lowest, &cells_[lowest]};
  return *recent.cell;
}

// At most two corners along each coordinate; one where the point stands on an edge.
template <class Visit>
void StepSurface::visit_corners(const StepPoint& point, Visit visit) {
  const std::int64_t rows = point.prefill_tokens == 0 ? 0 : point.prefill_tokens + point.decode_sequences;
  constexpr int kCoordinates = 6;
  const std::array<Between, kCoordinates> around{around_count(rows, 4),
                                                 around_keys(point.prefill_keys, key_step_),
                                                 around_count(point.decode_sequences, 2),
                                                 around_keys(point.decode_keys, key_step_),
                                                 around_ratio(point.others),
                                                 around_count(point.fillers, 2)};
  const auto edges = [&](std::uint32_t upper) {
    const auto whole = [&](int c) {
      return static_cast<std::int64_t>((upper >> c & 1) != 0 ? around[c].high : around[c].low);
    };
    const std::int64_t prompts = rows == 0 ? 0 : std::max<std::int64_t>(1, whole(0) - whole(2));
    return StepPoint{prompts,
                     whole(1),
                     whole(2),
                     whole(3),
                     (upper >> 4 & 1) != 0 ? around[4].high : around[4].low,
                     whole(5),
                     point.eager,
                     point.absorbed};
  };
  Cell& cell = cell_at(edges(0));
  std::uint32_t inside = 0;  // coordinates along which the point is between edges
  for (int c = 0; c < kCoordinates; ++c) inside |= static_cast<std::uint32_t>(around[c].share > 0) << c;
  for (std::uint32_t upper = inside;; upper = (upper - 1) & inside) {  // every subset of them
    if ((cell.known >> upper & 1) == 0) {
      cell.corner[upper] = &corner(edges(upper));
      cell.seconds[upper] = cell.corner[upper]->seconds;
      cell.known |= std::uint64_t{1} << upper;
    }
    double weight = 1;
    for (int c = 0; c < kCoordinates; ++c)
      if ((inside >> c & 1) != 0) weight *= (upper >> c & 1) != 0 ? around[c].share : 1 - around[c].share;
    visit(cell, upper, weight);
    if (upper == 0) return;
  }
}

double StepSurface::at(const StepPoint& point, double times) {
  double sum = 0;
  visit_corners(point, [&](Cell& cell, std::uint32_t corner, double weight) {
    sum += weight * cell.seconds[corner];
    cell.times[corner] += weight * times;
  });
  return sum;
}

StepTime StepSurface::time_at(const StepPoint& point) {
  StepTime time;
  visit_corners(point, [&](Cell& cell, std::uint32_t corner, double weight) {
    time.add(*cell.corner[corner], weight);
  });
  return time;
}

BusySources StepSurface::busy() const {
  BusySources sum;
  for (const auto& [lowest, cell] : cells_)
    for (int corner = 0; corner < kCorners; ++corner)
      if (cell.times[corner] != 0) sum.add(cell.corner[corner]->busy, cell.times[corner]);
  return sum;
}

double StepSurface::of_replica(const StepShape& own, std::span<const StepShape> replicas, bool sampled) {
  const StepPoint point = point_of(own, replicas);
  if (sampled) sample(point);
  return at(point, sampled ? 1 : 0);
}

// Algorithm R (Vitter 1985), with numbers that depend on nothing but the count.
void StepSurface::sample(const StepPoint& point) {
  Sample& sample = samples_[point.prefill_tokens > 0];
  if (++sample.asked <= kSampled) {
    sample.points.push_back(point);
    return;
  }
  const auto place = static_cast<std::int64_t>(random_bits(0x73757266, sample.asked) % sample.asked);
  if (place < kSampled) sample.points[place] = point;
}

SurfaceError StepSurface::error() {
  std::vector<double> errors;
  for (const Sample& sample : samples_)
    for (const StepPoint& point : sample.points)
      errors.push_back(std::abs(at(point) / measure_(point).seconds - 1));
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  const auto place = [&](double share) {
    return errors[static_cast<std::size_t>(share * (errors.size() - 1))];
  };
  return {static_cast<std::int64_t>(errors.size()), place(0.5), place(0.9), errors.back()};
}

// Nothing is smaller than a token of a sequence: parts are rounded up.
StepStalls StepSurface::stalls(std::span<const StepShape> replicas, double seconds) {
  if (replicas.size() < 2) return {};
  StepShape sum;
  for (const StepShape& shape : replicas) {
    sum.prefill_tokens += shape.prefill_tokens;
    sum.prefill_pairs += shape.prefill_pairs;
    sum.decode_sequences += shape.decode_sequences;
    sum.decode_context += shape.decode_context;
    sum.fillers += shape.fillers;
    sum.eager |= shape.eager;
    sum.absorbed |= shape.absorbed;
  }
  StepPoint even = point_of(sum, 1);
  const auto count = static_cast<std::int64_t>(replicas.size());
  even.prefill_tokens = (even.prefill_tokens + count - 1) / count;
  even.decode_sequences = (even.decode_sequences + count - 1) / count;
  even.fillers = sum.fillers / count;
  return {.barrier = std::max(0.0, seconds - at(even))};
}

double StepSurface::seconds(std::span<const StepShape> replicas) {
  return slowest(replicas, true);
}

double StepSurface::forecast(std::span<const StepShape> replicas) {
  return slowest(replicas, false);
}

double StepSurface::slowest(std::span<const StepShape> replicas, bool sampled) {
  const StepShape *rows = &replicas[0], *keys = &replicas[0], *absorbed = nullptr;
  const auto pairs = [](const StepShape& shape) { return shape.prefill_pairs + shape.decode_context; };
  for (const StepShape& shape : replicas) {
    if (shape.rows() > rows->rows()) rows = &shape;
    if (pairs(shape) > pairs(*keys)) keys = &shape;
    if (shape.absorbed && (absorbed == nullptr || pairs(shape) > pairs(*absorbed))) absorbed = &shape;
  }
  const StepShape* longest = rows;
  double seconds = of_replica(*rows, replicas, sampled);
  const auto compare = [&](const StepShape& other) {
    const double of_other = of_replica(other, replicas, sampled);
    const bool longer = of_other > seconds;
    if (sampled) at(point_of(longer ? *longest : other, replicas), -1);  // the shorter one counts not
    if (longer) longest = &other, seconds = of_other;
  };
  if (keys != rows) compare(*keys);
  if (absorbed != nullptr && absorbed != rows && absorbed != keys) compare(*absorbed);
  return seconds;
}

}  // namespace moebius
