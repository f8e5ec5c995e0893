#include "workloads/accuracy/error_spread.h"

#include <algorithm>
#include <cmath>

#include "hw/error.h"

namespace moebius {

namespace {

constexpr double kHalfPi = 1.5707963267948966;
constexpr double kNormalDecile = 1.2815515655446004;  // of the standard normal distribution

double median_of(const AccuracySource& source) {
  std::vector<WeightedPoint> points;
  for (const double error : source.errors()) points.push_back({error, 1});
  return weighted_quantile(std::move(points), 0.5);
}

// Of the median of so many rows, over that of a row. Of one and two it is their mean.
double variance_of_median(double rows) {
  return rows <= 2 ? 1 / rows : kHalfPi / rows;
}

double squares_of_parts(const AccuracySource& source) {
  double squares = 0;
  for (const AccuracyPoint& point : source.points) squares += point.parts * point.parts;
  return squares / static_cast<double>(source.points.size());
}

}  // namespace

double weighted_quantile(std::vector<WeightedPoint> points, double share) {
  CHECK(!points.empty(), "no points");
  std::sort(points.begin(), points.end(),
            [](const WeightedPoint& a, const WeightedPoint& b) { return a.value < b.value; });
  double whole = 0, before = 0;
  for (const WeightedPoint& point : points) whole += point.weight;
  const double aim = share * whole;
  double last = points.front().value, at = -1;
  for (const WeightedPoint& point : points) {
    const double middle = before + point.weight / 2;
    if (aim <= middle) return at < 0 ? point.value : last + (point.value - last) * (aim - at) / (middle - at);
    before += point.weight;
    last = point.value;
    at = middle;
  }
  return last;
}

// Exact for one and two degrees; from three the expansion of Cornish and Fisher about the normal decile
// (Abramowitz and Stegun 26.7.5), within 0.2% there; between them a line over the inverse.
double student_ninth_decile(double degrees) {
  CHECK(degrees >= 1, "a deviation of one value");
  if (degrees < 3) {
    const double low = std::floor(degrees), high = low + 1;
    const double at_low = low == 1 ? 3.0776835371752527 : 1.8856180831641267;
    const double at_high = low == 1 ? 1.8856180831641267 : student_ninth_decile(3);
    return at_high + (at_low - at_high) * (1 / degrees - 1 / high) / (1 / low - 1 / high);
  }
  const double z = kNormalDecile, n = degrees;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

std::optional<ErrorSpread> spread_of(const std::vector<const AccuracySource*>& sources) {
  const auto count = static_cast<double>(sources.size());
  if (sources.size() < 2) return std::nullopt;
  ErrorSpread spread{.sources = static_cast<int>(sources.size())};
  std::vector<double> medians;
  std::vector<WeightedPoint> about;
  double parts = 0, of_medians = 0;
  for (const AccuracySource* source : sources) {
    of_medians += variance_of_median(static_cast<double>(source->points.size())) / count;
    spread.rows += source->rows;
    medians.push_back(median_of(*source));
    spread.centre += medians.back() / count;
    parts += squares_of_parts(*source) / count;
    for (const double error : source->errors())
      about.push_back({error - medians.back(), 1.0 / static_cast<double>(source->points.size())});
  }
  double between = 0;
  for (const double median : medians) between += (median - spread.centre) * (median - spread.centre);
  between /= count - 1;
  const double within = (weighted_quantile(about, 0.9) - weighted_quantile(about, 0.1)) / (2 * kNormalDecile);
  const double inside = within * within;
  const double outside = std::max(0.0, between - inside * of_medians) + between / count;
  spread.deviation = std::sqrt(inside + outside);
  const double rows_beyond = std::max(1.0, static_cast<double>(about.size()) - count);
  const double spent = outside * outside / (count - 1) + inside * inside / rows_beyond;
  if (spent > 0) spread.degrees = std::max(1.0, (inside + outside) * (inside + outside) / spent);
  spread.parts = std::sqrt(parts);
  return spread;
}

ErrorBand band_of(const ErrorSpread& spread, double parts) {
  const double left = spread.deviation * spread.deviation - spread.parts * spread.parts;
  const double own =
      spread.parts > 0 ? parts : 0;  // where rows did not tell theirs, they are in the deviation
  const double reach = student_ninth_decile(spread.degrees) * std::sqrt(std::max(0.0, left) + own * own);
  return {spread.centre - reach, spread.centre + reach};
}

}  // namespace moebius
