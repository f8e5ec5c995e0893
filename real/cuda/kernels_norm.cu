// RMSNorm and rotary positions: real/host/host_kernels_norm.h on a device.
#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"
#include "real/cuda/quantise.cuh"

namespace moebius::cuda {
namespace {

MOEBIUS_DEVICE float inverse_rms(const Team& team, const Operand& x, std::int64_t row, double epsilon) {
  const double squares = team.sum<double>(x.columns, [&](std::int64_t c) {
    const double value = load(x, row, c);
    return value * value;
  });
  return static_cast<float>(1 / sqrt(squares / static_cast<double>(x.columns) + epsilon));
}

struct NormRow {
  Norm n;
  Operand y;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const float scale = inverse_rms(team, n.x, row, n.epsilon);
    team.each(n.x.columns, [&](std::int64_t c) {
      const float z = n.gate.data == nullptr ? 0 : load(n.gate, row, c);
      const float gate = n.gate.data == nullptr ? 1 : z / (1 + expf(-z));
      store(y, row * n.x.columns + c, load(n.x, row, c) * scale * load(n.weight, c) * gate);
    });
  }
};

// The same values in two formats, each rounded by itself.
struct NormQuantised {
  Norm n;
  Operand y, codes;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const float scale = inverse_rms(team, n.x, row, n.epsilon);
    quantise_row(team, codes, row, [&](std::int64_t c) {
      const float value = load(n.x, row, c) * scale * load(n.weight, c);
      store(y, row * n.x.columns + c, value);
      return value;
    });
  }
};

// dx = r*w*dy - x * r^3/n * sum(dy*w*x), and r for the gradient of the weight.
struct NormGradRow {
  NormGrad g;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const double r = inverse_rms(team, g.x, row, g.epsilon);
    const double projection = team.sum<double>(g.x.columns, [&](std::int64_t c) {
      return static_cast<double>(load(g.dy, row, c)) * load(g.weight, c) * load(g.x, row, c);
    });
    const auto pull = static_cast<float>(projection * r * r * r / static_cast<double>(g.x.columns));
    const auto scale = static_cast<float>(r);
    team.each(g.x.columns, [&](std::int64_t c) {
      store(g.dx, row * g.x.columns + c,
            scale * load(g.weight, c) * load(g.dy, row, c) - load(g.x, row, c) * pull);
    });
    team.each(1, [&](std::int64_t) { store(g.inverse_rms, row, scale); });
  }
};

// dw = sum over rows of dy*x*r, in parts of neighbouring rows, a column for each thread.
struct NormGradPart {
  NormGrad g;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t part) const {
    const std::int64_t rows = g.x.rows, count = g.parts.columns;
    const std::int64_t first = part * rows / count, last = (part + 1) * rows / count;
    team.each(g.x.columns, [&](std::int64_t column) {
      float sum = 0;
      for (std::int64_t row = first; row < last; ++row)
        sum += load(g.dy, row, column) * load(g.x, row, column) * load(g.inverse_rms, row);
      store(g.parts, column * count + part, sum);
    });
  }
};

struct NormGradColumn {
  NormGrad g;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t column) const {
    const std::int64_t count = g.parts.columns;
    const float sum =
        team.sum<float>(count, [&](std::int64_t part) { return load(g.parts, column * count + part); });
    team.each(1, [&](std::int64_t) { store(g.dweight, column, load(g.dweight, column) + sum); });
  }
};

// A pair of columns that turn, in all heads of a row; or a column of them that stays.
struct Rotate {
  Rotation r;
  Operand x, y;
  std::int64_t width;  // of a head

  static MOEBIUS_BOTH std::int64_t items(const Rotation& r, std::int64_t width) { return width - r.rotated / 2; }

  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t of_row = items(r, width), row = index / of_row, item = index % of_row;
    const std::int64_t half = r.rotated / 2, still = width - r.rotated;
    item < half ? turn(row, item, still + item) : keep(row, item - half);
  }
  MOEBIUS_DEVICE void keep(std::int64_t row, std::int64_t column) const {
    for (std::int64_t head = 0; head < r.heads; ++head) {
      const std::int64_t at = row * x.columns + head * width + column;
      store(y, at, load(x, row, head * width + column));
    }
  }
  MOEBIUS_DEVICE void turn(std::int64_t row, std::int64_t pair, std::int64_t left) const {
    const double across = (static_cast<double>(pair) - r.low) / (r.high - r.low);
    const double stretched = across < 0 ? 0 : across > 1 ? 1 : across;
    const double frequency = pow(r.base, -2.0 * static_cast<double>(pair) / static_cast<double>(r.rotated)) *
                             (1 - stretched + stretched / r.factor);
    const std::int64_t position =
        r.positions != nullptr ? r.positions[row] : r.first_position + row % r.sequence_rows;
    const double angle = static_cast<double>(position) * frequency;
    const double cosine = r.magnitude * cos(angle);
    const double sine = r.magnitude * (r.back ? -sin(angle) : sin(angle));
    for (std::int64_t head = 0; head < r.heads; ++head) {
      const std::int64_t first = head * width + left, second = first + r.rotated / 2;
      const double a = load(x, row, first), b = load(x, row, second);
      store(y, row * x.columns + first, static_cast<float>(a * cosine - b * sine));
      store(y, row * x.columns + second, static_cast<float>(a * sine + b * cosine));
    }
  }
};

}  // namespace

void rms_norm(Stream stream, const Norm& norm, const Operand& y) {
  launch_teams(stream, norm.x.rows, NormRow{norm, y});
}

void rms_norm_quantised(Stream stream, const Norm& norm, const Operand& y, const Operand& codes) {
  launch_teams(stream, norm.x.rows, NormQuantised{norm, y, codes});
}

void rms_norm_grad(Stream stream, const NormGrad& grad) {
  launch_teams(stream, grad.x.rows, NormGradRow{grad});
  launch_teams(stream, grad.parts.columns, NormGradPart{grad});
  launch_teams(stream, grad.x.columns, NormGradColumn{grad});
}

void rotate(Stream stream, const Rotation& rotation, const Operand& x, const Operand& y) {
  const std::int64_t width = x.columns / rotation.heads;
  launch_elements(stream, x.rows * Rotate::items(rotation, width), Rotate{rotation, x, y, width});
}

}  // namespace moebius::cuda
