#include "workloads/accuracy/error_spread.h"

#include <algorithm>
#include <cmath>

#include "hw/error.h"

namespace moebius {

namespace {

constexpr double kNormalDecile = 1.2815515655446004;  // of the standard normal distribution

double median_of(const AccuracySource& source) {
  std::vector<WeightedPoint> points;
  for (const double error : source.errors()) points.push_back({error, 1});
  return weighted_quantile(std::move(points), 0.5);
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

// Exact for one and two degrees; from there the expansion of Cornish and Fisher about the normal decile
// (Abramowitz and Stegun 26.7.5), within 0.2% at three.
double student_ninth_decile(int degrees) {
  CHECK(degrees >= 1, "a deviation of one value");
  if (degrees == 1) return 3.0776835371752527;
  if (degrees == 2) return 1.8856180831641267;
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
  double parts = 0;
  for (const AccuracySource* source : sources) {
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
  spread.deviation = std::sqrt(within * within + between * (1 + 1 / count));
  spread.parts = std::sqrt(parts);
  return spread;
}

ErrorBand band_of(const ErrorSpread& spread, double parts) {
  const double left = spread.deviation * spread.deviation - spread.parts * spread.parts;
  const double own =
      spread.parts > 0 ? parts : 0;  // where rows did not tell theirs, they are in the deviation
  const double reach = student_ninth_decile(spread.sources - 1) * std::sqrt(std::max(0.0, left) + own * own);
  return {spread.centre - reach, spread.centre + reach};
}

}  // namespace moebius
