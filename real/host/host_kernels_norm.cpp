#include "real/host/host_kernels_norm.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

double inverse_rms(double mean_square, double epsilon) {
  return 1 / std::sqrt(mean_square + epsilon);
}

// Cosine and sine of every pair at one position.
struct Angles {
  std::vector<double> cosine, sine;
  Angles(std::int64_t position, const RotaryShape& shape)
      : cosine(shape.rotated / 2), sine(shape.rotated / 2) {
    for (std::int64_t i = 0; i < shape.rotated / 2; ++i) {
      const double angle = static_cast<double>(position) * rotary_frequency(shape.rotary, i, shape.rotated);
      cosine[i] = shape.rotary.magnitude * std::cos(angle);
      sine[i] = shape.rotary.magnitude * std::sin(angle);
    }
  }
};

template <class Real>
void rotate_head(Real* head, const Angles& angles, Turn turn) {
  const std::size_t half = angles.cosine.size();
  for (std::size_t i = 0; i < half; ++i) {
    const double a = head[i], b = head[i + half];
    const double sine = turn == Turn::kForward ? angles.sine[i] : -angles.sine[i];
    head[i] = static_cast<Real>(a * angles.cosine[i] - b * sine);
    head[i + half] = static_cast<Real>(a * sine + b * angles.cosine[i]);
  }
}

}  // namespace

template <class Real>
std::vector<double> mean_squares(std::span<const Real> x, std::size_t columns) {
  std::vector<double> means;
  for (std::size_t first = 0; first < x.size(); first += columns) {
    double squares = 0;
    for (const Real value : x.subspan(first, columns)) squares += static_cast<double>(value) * value;
    means.push_back(squares / static_cast<double>(columns));
  }
  return means;
}

template <class Real>
std::vector<double> mean_projections(std::span<const Real> dy, std::span<const Real> x,
                                     std::span<const Real> weight) {
  const std::size_t columns = weight.size();
  std::vector<double> means;
  for (std::size_t first = 0; first < x.size(); first += columns) {
    double projection = 0;
    for (std::size_t c = 0; c < columns; ++c)
      projection += static_cast<double>(dy[first + c]) * weight[c] * x[first + c];
    means.push_back(projection / static_cast<double>(columns));
  }
  return means;
}

template <class Real>
void rms_norm(std::span<const Real> x, std::span<const Real> weight, std::span<Real> y, double epsilon) {
  CHECK(x.size() % weight.size() == 0, fmt::format("{} by {}", x.size(), weight.size()));
  rms_norm<Real>(x, weight, mean_squares(x, weight.size()), y, epsilon);
}

template <class Real>
void rms_norm(std::span<const Real> x, std::span<const Real> weight, std::span<const double> mean_squares,
              std::span<Real> y, double epsilon) {
  const std::size_t columns = weight.size();
  CHECK(x.size() == y.size() && x.size() == mean_squares.size() * columns,
        fmt::format("{} by {}", x.size(), columns));
  for (std::size_t row = 0; row < mean_squares.size(); ++row) {
    const auto scale = static_cast<Real>(inverse_rms(mean_squares[row], epsilon));
    const std::size_t first = row * columns;
    for (std::size_t c = 0; c < columns; ++c) y[first + c] = x[first + c] * scale * weight[c];
  }
}

template <class Real>
void rms_norm_grad(std::span<const Real> dy, std::span<const Real> x, std::span<const Real> weight,
                   const NormGradient<Real>& gradient, double epsilon) {
  CHECK(x.size() == dy.size() && x.size() % weight.size() == 0,
        fmt::format("{} by {}", x.size(), weight.size()));
  const std::vector<double> squares = mean_squares(x, weight.size()),
                            projections = mean_projections(dy, x, weight);
  rms_norm_grad<Real>(dy, x, weight, {squares, projections}, gradient, epsilon);
}

// With r = 1/rms: dx = r*w*dy - x * r^3 * mean(dy*w*x); dw = sum over rows of dy*x*r.
template <class Real>
void rms_norm_grad(std::span<const Real> dy, std::span<const Real> x, std::span<const Real> weight,
                   const KnownMeans& means, const NormGradient<Real>& gradient, double epsilon) {
  const std::size_t columns = weight.size(), rows = means.squares.size();
  CHECK(x.size() == dy.size() && x.size() == gradient.dx.size() && x.size() == rows * columns &&
            means.projections.size() == rows && gradient.dweight.size() == columns,
        fmt::format("{} by {}", x.size(), columns));
  for (std::size_t row = 0; row < rows; ++row) {
    const double r = inverse_rms(means.squares[row], epsilon);
    const auto pull = static_cast<Real>(means.projections[row] * r * r * r);
    const auto scale = static_cast<Real>(r);
    const std::size_t first = row * columns;
    for (std::size_t c = 0; c < columns; ++c) {
      gradient.dx[first + c] = scale * weight[c] * dy[first + c] - x[first + c] * pull;
      gradient.dweight[c] += dy[first + c] * x[first + c] * scale;
    }
  }
}

template <class Real>
void rotate(std::span<Real> values, const RotaryShape& shape, Turn turn) {
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / shape.columns;
  const std::int64_t width = shape.columns / shape.heads;
  CHECK(shape.rotated % 2 == 0 && shape.rotated <= width && width * shape.heads == shape.columns,
        fmt::format("rotated={} columns={} heads={}", shape.rotated, shape.columns, shape.heads));
  for (std::int64_t p = 0; p < shape.sequence_rows; ++p) {
    const Angles angles(shape.first_position + p, shape);
    for (std::int64_t row = p; row < rows; row += shape.sequence_rows) {
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        rotate_head(&values[row * shape.columns + (head + 1) * width - shape.rotated], angles, turn);
      }
    }
  }
}

template void rms_norm(std::span<const float>, std::span<const float>, std::span<float>, double);
template void rms_norm(std::span<const float>, std::span<const float>, std::span<const double>,
                       std::span<float>, double);
template void rms_norm_grad(std::span<const float>, std::span<const float>, std::span<const float>,
                            const NormGradient<float>&, double);
template void rms_norm_grad(std::span<const float>, std::span<const float>, std::span<const float>,
                            const KnownMeans&, const NormGradient<float>&, double);
template std::vector<double> mean_squares(std::span<const float>, std::size_t);
template std::vector<double> mean_projections(std::span<const float>, std::span<const float>,
                                              std::span<const float>);
template void rms_norm(std::span<const double>, std::span<const double>, std::span<double>, double);
template void rms_norm(std::span<const double>, std::span<const double>, std::span<const double>,
                       std::span<double>, double);
template void rms_norm_grad(std::span<const double>, std::span<const double>, std::span<const double>,
                            const NormGradient<double>&, double);
template void rms_norm_grad(std::span<const double>, std::span<const double>, std::span<const double>,
                            const KnownMeans&, const NormGradient<double>&, double);
template std::vector<double> mean_squares(std::span<const double>, std::size_t);
template std::vector<double> mean_projections(std::span<const double>, std::span<const double>,
                                              std::span<const double>);
template void rotate(std::span<float>, const RotaryShape&, Turn);
template void rotate(std::span<double>, const RotaryShape&, Turn);

}  // namespace moebius
