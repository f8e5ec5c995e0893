#include "workloads/serving/system/step_surface.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>

#include "workloads/routing/random_stream.h"

namespace moebius {
namespace {

struct Between {  // two edges, and how far from the lower to the upper
  double low = 0, high = 0, share = 0;
};

Between between(double low, double high, double value) {
  return {low, high, high > low ? (value - low) / (high - low) : 0};
}

// 0, 1, 2, and steps of a power of two over 2^`halvings` above: with one halving 3, 4, 6, 8, 12, ...
Between around_count(std::int64_t value, int halvings) {
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value)));
  const std::int64_t step = std::max<std::int64_t>(1, below >> halvings);
  const std::int64_t low = value & -step;
  return between(static_cast<double>(low), static_cast<double>(low == value ? low : low + step), value);
}

// 1, 16, 256, ... for a step of 16, with halves between for one of 2; the edge itself where the value is one.
Between around_keys(std::int64_t value, StepSurface::KeyStep step) {
  if (step == StepSurface::KeyStep::kFine) return around_count(value, 1);
  if (value <= 1) return between(value, value, value);
  constexpr int kBits = 4;  // of a step
  const int power = std::bit_width(static_cast<std::uint64_t>(value)) - 1;
  const std::int64_t edge = std::int64_t{1} << power / kBits * kBits;
  if (edge == value) return between(value, value, value);
  return between(edge, edge << kBits, value);
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
  const auto mixed = static_cast<std::uint64_t>(lowest.decode_sequences + 3 * lowest.decode_keys +
                                                5 * lowest.prefill_tokens + 7 * lowest.prefill_keys);
  static_assert(std::tuple_size_v<decltype(recent_)> == 1 << 6);
  Recent& recent = recent_[mixed * RandomStream::kGolden >> (64 - 6)];
  if (recent.cell == nullptr || !(recent.lowest == lowest)) recent = {lowest, &cells_[lowest]};
  return *recent.cell;
}

// At most two corners along each coordinate; one where the point stands on an edge.
template <class Visit>
void StepSurface::visit_corners(const StepPoint& point, Visit visit) {
  const std::int64_t rows = point.prefill_tokens == 0 ? 0 : point.prefill_tokens + point.decode_sequences;
  constexpr int kCoordinates = 6;
  const std::array<Between, kCoordinates> around{around_count(rows, 2),
                                                 around_keys(point.prefill_keys, key_step_),
                                                 around_count(point.decode_sequences, 1),
                                                 around_keys(point.decode_keys, key_step_),
                                                 around_ratio(point.others),
                                                 around_count(point.fillers, 1)};
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
  // Every subset of the coordinates along which the point is between edges.
  struct Corner {
    std::uint32_t upper;
    double weight;
  };
  std::array<Corner, kCorners> corners;
  corners[0] = {0, 1};
  int count = 1;
  for (int c = 0; c < kCoordinates; ++c) {
    const double share = around[c].share;
    if (!(share > 0)) continue;
    for (int i = 0; i < count; ++i) {
      corners[count + i] = {corners[i].upper | 1u << c, corners[i].weight * share};
      corners[i].weight *= 1 - share;
    }
    count *= 2;
  }
  for (int i = count - 1; i >= 0; --i) {
    const auto [upper, weight] = corners[i];
    if ((cell.known >> upper & 1) == 0) {
      cell.corner[upper] = &corner(edges(upper));
      cell.seconds[upper] = cell.corner[upper]->seconds;
      cell.known |= std::uint64_t{1} << upper;
    }
    visit(cell, upper, weight);
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

// Algorithm L (Li 1994), with numbers that depend on nothing but the count: most iterations are passed over
// without a number of their own.
void StepSurface::sample(const StepPoint& point) {
  Sample& sample = samples_[point.prefill_tokens > 0];
  if (++sample.asked < sample.next) return;
  RandomStream stream(RandomStream::finalise(0x73757266 + static_cast<std::uint64_t>(sample.asked)));
  if (sample.asked <= kSampled) {
    sample.points.push_back(point);
  } else {
    sample.points[stream.below(kSampled)] = point;
  }
  if (sample.asked < kSampled) return;  // each of the first is one of them
  sample.largest *= std::exp(std::log(stream.unit()) / kSampled);
  const double passed = std::log(stream.unit()) / std::log1p(-sample.largest);
  sample.next = sample.asked + 1 + static_cast<std::int64_t>(std::min(passed, 1e15));
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
