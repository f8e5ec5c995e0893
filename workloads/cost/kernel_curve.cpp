#include "workloads/cost/kernel_curve.h"

#include <algorithm>
#include <cmath>

#include "models/layer_math.h"
#include "workloads/cost/roofline.h"

namespace moebius {

namespace {

constexpr std::size_t kMostSteps = 6;
constexpr double kLeastStep = 0.05;  // of the time; smaller ones are not told from a slope
constexpr double kOverSlope = 4;     // times x's own growth: work with the square of x grows by two of it
constexpr int kPlotColumns = 96;

// Rows of each expert where they do not come out even; empty where they do, which is what costs take for
// even.
std::vector<std::int32_t> rows_of(OpKind kind, const Shape& shape) {
  if (!is_grouped(kind)) return {};
  const std::int64_t sum = kind == OpKind::kGroupedGemmWgrad ? shape.k : shape.m;
  if (sum % shape.groups == 0) return {};
  std::vector<std::int32_t> rows(static_cast<std::size_t>(shape.groups),
                                 static_cast<std::int32_t>(sum / shape.groups));
  for (std::int64_t i = 0; i < sum % shape.groups; ++i) ++rows[static_cast<std::size_t>(i)];
  return rows;
}

class Plotter {
 public:
  Plotter(const Accelerator& chip, const KernelSweep& sweep, const CostSource& costs, const ClockPower& power)
      : chip_(chip), sweep_(sweep), costs_(costs), power_(power) {}

  KernelPoint point(std::int64_t x) const {
    const Shape shape = sweep_.shape(x);
    const std::vector<std::int32_t> rows = rows_of(sweep_.op, shape);
    const CostQuery query{.kind = sweep_.op,
                          .shape = shape,
                          .dtype = sweep_.dtype,
                          .cores = sweep_.cores,
                          .rows = rows,
                          .stored = sweep_.stored};
    KernelPoint point{.x = x,
                      .cost = costs_.cost(query),
                      .flops = op_flops(sweep_.op, shape).value,
                      .bytes = least_bytes(query),
                      .bound = roofline(chip_, query).seconds()};
    point.clock = sustained_clock(power_, {sweep_.op, product_dtype(chip_, query), point.flops,
                                           point.cost.memory_bytes, point.cost.seconds});
    return point;
  }

  // Both sides of the steps from low to high, the first ones: halves that get longer hold the steps.
  void add_steps(const KernelPoint& low, const KernelPoint& high, std::vector<KernelPoint>& found) const {
    const double growth = high.cost.seconds / low.cost.seconds - 1;
    if (growth < kLeastStep || found.size() >= 2 * kMostSteps) return;
    if (high.x - low.x <= sweep_.grain) {
      if (growth < kOverSlope * static_cast<double>(high.x - low.x) / static_cast<double>(high.x)) return;
      found.push_back(low);
      found.push_back(high);
      found.back().step = growth;
      return;
    }
    const KernelPoint middle = point(middle_of(low.x, high.x));
    add_steps(low, middle, found);
    add_steps(middle, high, found);
  }

 private:
  // A multiple of the grain strictly between the two, which are more than a grain apart.
  std::int64_t middle_of(std::int64_t low, std::int64_t high) const {
    const std::int64_t grain = sweep_.grain, middle = (low + (high - low) / 2) / grain * grain;
    return middle > low ? middle : (low / grain + 1) * grain;
  }

  const Accelerator& chip_;
  const KernelSweep& sweep_;
  const CostSource& costs_;
  const ClockPower& power_;
};

// Ascending, each x once; one that is known as a step stays it.
void arrange(std::vector<KernelPoint>& points) {
  std::stable_sort(points.begin(), points.end(), [](const KernelPoint& a, const KernelPoint& b) {
    return a.x != b.x ? a.x < b.x : a.step > b.step;
  });
  const auto same = [](const KernelPoint& a, const KernelPoint& b) { return a.x == b.x; };
  points.erase(std::unique(points.begin(), points.end(), same), points.end());
}

std::vector<KernelPoint> points_of(const Plotter& plotter, const KernelSweep& sweep) {
  std::vector<KernelPoint> points;
  for (std::int64_t x = sweep.first; x <= sweep.last; x *= sweep.factor) points.push_back(plotter.point(x));
  std::vector<KernelPoint> steps;
  for (std::size_t i = 1; i < points.size(); ++i) plotter.add_steps(points[i - 1], points[i], steps);
  points.insert(points.end(), steps.begin(), steps.end());
  arrange(points);
  return points;
}

std::vector<KernelPoint> columns_of(const Plotter& plotter, const KernelSweep& sweep) {
  std::vector<KernelPoint> columns;
  const double octaves = std::log(static_cast<double>(sweep.last) / static_cast<double>(sweep.first));
  for (int i = 0; i < kPlotColumns; ++i) {
    const double x = static_cast<double>(sweep.first) * std::exp(octaves * i / (kPlotColumns - 1));
    columns.push_back(plotter.point(std::llround(x)));
  }
  arrange(columns);
  return columns;
}

}  // namespace

KernelCurve kernel_curve(const KernelRequest& request, const Accelerator& chip, const CostSource& costs,
                         const ClockPower& power) {
  KernelCurve curve{
      .chip = chip, .sweep = kernel_sweep(request, chip), .costs = costs.description(), .limit = power.limit};
  curve.products = product_dtype(curve.chip, {.kind = curve.sweep.op,
                                              .shape = curve.sweep.shape(curve.sweep.first),
                                              .dtype = curve.sweep.dtype,
                                              .stored = curve.sweep.stored});
  const Plotter plotter(curve.chip, curve.sweep, costs, power);
  curve.points = points_of(plotter, curve.sweep);
  curve.columns = columns_of(plotter, curve.sweep);
  return curve;
}

}  // namespace moebius
