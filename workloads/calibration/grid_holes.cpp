#include "workloads/calibration/grid_holes.h"

#include <cmath>

namespace moebius {
namespace {

// The lines through a grid point, one an axis.
struct GridLine {
  std::size_t stride = 1, size = 1;
};

std::vector<GridLine> lines_of(const std::vector<std::size_t>& axis_sizes) {
  std::vector<GridLine> lines(axis_sizes.size());
  std::size_t stride = 1;
  for (std::size_t axis = axis_sizes.size(); axis-- > 0; stride *= axis_sizes[axis])
    lines[axis] = {stride, axis_sizes[axis]};
  return lines;
}

// Zero when all lines through the point are empty.
double mean_of_nearest(const std::vector<double>& values, std::size_t value,
                       const std::vector<GridLine>& lines) {
  double sum = 0, weights = 0;
  const auto add = [&](double other, std::size_t steps) {
    const double weight = 1 / static_cast<double>(steps * steps);
    sum += weight * std::log(other);
    weights += weight;
  };
  for (const GridLine& line : lines) {
    const std::size_t index = value / line.stride % line.size;
    for (std::size_t steps = 1; steps <= index; ++steps)
      if (const double other = values[value - steps * line.stride]; other > 0) {
        add(other, steps);
        break;
      }
    for (std::size_t steps = 1; index + steps < line.size; ++steps)
      if (const double other = values[value + steps * line.stride]; other > 0) {
        add(other, steps);
        break;
      }
  }
  return weights > 0 ? std::exp(sum / weights) : 0;
}

}  // namespace

void fill_holes(std::vector<double>& values, const std::vector<std::size_t>& axis_sizes) {
  const std::vector<GridLine> lines = lines_of(axis_sizes);
  for (bool again = true; again;) {
    again = false;
    const std::vector<double> before = values;
    for (std::size_t value = 0; value < values.size(); ++value) {
      if (before[value] > 0) continue;
      values[value] = mean_of_nearest(before, value, lines);
      again = again || values[value] > 0;
    }
  }
}

}  // namespace moebius
