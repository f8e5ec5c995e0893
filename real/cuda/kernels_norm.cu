// RMSNorm and rotary positions: real/host/host_kernels_norm.h on a device.
#include "real/cuda/eight.cuh"
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

// As inverse_rms, or by the mean that is known.
MOEBIUS_DEVICE float inverse_rms(const Team& team, const Norm& n, std::int64_t row) {
  if (n.means.data == nullptr) return inverse_rms(team, n.x, row, n.epsilon);
  return static_cast<float>(1 / sqrt(static_cast<double>(load(n.means, row, n.column)) + n.epsilon));
}

struct NormRow {
  Norm n;
  Operand y;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const float scale = inverse_rms(team, n, row);
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
    const float scale = inverse_rms(team, n, row);
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
    const double r = inverse_rms(team, Norm{g.x, g.weight, g.epsilon, {}, g.means, g.column}, row);
    const double projection = g.projections.data == nullptr
                                  ? team.sum<double>(g.x.columns,
                                                     [&](std::int64_t c) {
                                                       return static_cast<double>(load(g.dy, row, c)) *
                                                              load(g.weight, c) * load(g.x, row, c);
                                                     }) /
                                        static_cast<double>(g.x.columns)
                                  : load(g.projections, row, g.column);
    const auto pull = static_cast<float>(projection * r * r * r);
    const auto scale = static_cast<float>(r);
    team.each(g.x.columns, [&](std::int64_t c) {
      store(g.dx, row * g.x.columns + c,
            scale * load(g.weight, c) * load(g.dy, row, c) - load(g.x, row, c) * pull);
    });
    team.each(1, [&](std::int64_t) { store(g.inverse_rms, row, scale); });
  }
};

// ---- a warp for each row, eight columns at a time: rows are often those of heads, short and many ----

// The sum of f(eight) over a row's eights, in every lane: in FP64 within a lane, which keeps long rows exact
// enough.
template <class F>
MOEBIUS_DEVICE void sum_over_row(const Warp& warp, std::int64_t columns, PerThread<float>& sum, const F& f) {
  warp.lanes([&](int thread, int lane) {
    double all = 0;
    for (std::int64_t i = lane; i < columns / kEight; i += kLanes) all += f(i * kEight);
    sum[thread] = static_cast<float>(all);
  });
  warp.join_all([&](int thread) -> float& { return sum[thread]; }, [](float a, float b) { return a + b; });
}

MOEBIUS_DEVICE float squares_of(const Eight& x) {
  float sum = 0;
  for (int j = 0; j < kEight; ++j) sum += x.of[j] * x.of[j];
  return sum;
}

MOEBIUS_DEVICE double inverse_rms_of(float squares, std::int64_t columns, double epsilon) {
  return 1 / sqrt(static_cast<double>(squares) / static_cast<double>(columns) + epsilon);
}

struct NormRowsByWarps {
  Norm n;
  Operand y;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t item) const {
    each_warp(team, [&](const Warp& warp) {
      const std::int64_t row = item * kTeamWarps + warp.index(), columns = n.x.columns, first = row * columns;
      if (row >= n.x.rows) return;
      PerThread<float> squares;
      sum_over_row(warp, columns, squares,
                   [&](std::int64_t c) { return squares_of(load_eight(n.x, first + c)); });
      warp.lanes([&](int thread, int lane) {
        const auto scale = static_cast<float>(inverse_rms_of(squares[thread], columns, n.epsilon));
        for (std::int64_t c = lane * kEight; c < columns; c += kLanes * kEight) {
          Eight x = load_eight(n.x, first + c);
          const Eight weight = load_eight(n.weight, c);
          for (int j = 0; j < kEight; ++j) x.of[j] = x.of[j] * scale * weight.of[j];
          store_eight(y, first + c, x);
        }
      });
    });
  }
};

struct NormGradRowsByWarps {
  NormGrad g;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t item) const {
    each_warp(team, [&](const Warp& warp) {
      const std::int64_t row = item * kTeamWarps + warp.index(), columns = g.x.columns, first = row * columns;
      if (row >= g.x.rows) return;
      PerThread<float> squares, projection;
      sum_over_row(warp, columns, squares,
                   [&](std::int64_t c) { return squares_of(load_eight(g.x, first + c)); });
      sum_over_row(warp, columns, projection, [&](std::int64_t c) {
        const Eight dy = load_eight(g.dy, first + c), x = load_eight(g.x, first + c),
                    w = load_eight(g.weight, c);
        float sum = 0;
        for (int j = 0; j < kEight; ++j) sum += dy.of[j] * w.of[j] * x.of[j];
        return sum;
      });
      warp.lanes([&](int thread, int lane) {
        const double r = inverse_rms_of(squares[thread], columns, g.epsilon);
        const auto pull = static_cast<float>(projection[thread] * r * r * r / static_cast<double>(columns));
        const auto scale = static_cast<float>(r);
        for (std::int64_t c = lane * kEight; c < columns; c += kLanes * kEight) {
          const Eight dy = load_eight(g.dy, first + c), x = load_eight(g.x, first + c),
                      w = load_eight(g.weight, c);
          Eight dx;
          for (int j = 0; j < kEight; ++j) dx.of[j] = scale * w.of[j] * dy.of[j] - x.of[j] * pull;
          store_eight(g.dx, first + c, dx);
        }
        if (lane == 0) store(g.inverse_rms, row, scale);
      });
    });
  }
};

std::int64_t items_by_warps(std::int64_t rows) {
  return (rows + kTeamWarps - 1) / kTeamWarps;
}

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

// Of one row.
struct RowMean {
  RowMeans of;
  Operand means;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    for (std::int64_t i = 0; i < of.count; ++i) {
      const RowMeans::Of& o = of.of[i];
      const double sum = team.sum<double>(o.x.columns, [&](std::int64_t c) {
        const double x = load(o.x, row, c);
        return o.dy.data == nullptr ? x * x : x * load(o.dy, row, c) * load(o.weight, c);
      });
      team.each(1, [&](std::int64_t) {
        store(means, row * of.count + i,
              static_cast<float>(sum / static_cast<double>(o.x.columns) * of.scale));
      });
    }
  }
};

// A pair of columns that turn, in all heads of a row; or a column of them that stays.
struct Rotate {
  Rotation r;
  Operand x, y;
  std::int64_t width;  // of a head

  static MOEBIUS_BOTH std::int64_t items(const Rotation& r, std::int64_t width) {
    return width - r.rotated / 2;
  }

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
  const bool eights = norm.gate.data == nullptr && norm.means.data == nullptr && rows_in_eights(norm.x) &&
                      rows_in_eights(y) && in_eights(norm.weight);
  if (!eights) return launch_teams(stream, norm.x.rows, NormRow{norm, y});
  launch_teams(stream, items_by_warps(norm.x.rows), NormRowsByWarps{norm, y});
}

void rms_norm_quantised(Stream stream, const Norm& norm, const Operand& y, const Operand& codes) {
  launch_teams(stream, norm.x.rows, NormQuantised{norm, y, codes});
}

void rms_norm_grad(Stream stream, const NormGrad& grad) {
  const bool eights = grad.means.data == nullptr && rows_in_eights(grad.x) && rows_in_eights(grad.dy) &&
                      rows_in_eights(grad.dx) && in_eights(grad.weight);
  if (eights) {
    launch_teams(stream, items_by_warps(grad.x.rows), NormGradRowsByWarps{grad});
  } else {
    launch_teams(stream, grad.x.rows, NormGradRow{grad});
  }
  launch_teams(stream, grad.parts.columns, NormGradPart{grad});
  launch_teams(stream, grad.x.columns, NormGradColumn{grad});
}

void row_means(Stream stream, const RowMeans& what, const Operand& means) {
  launch_teams(stream, means.rows, RowMean{what, means});
}

void rotate(Stream stream, const Rotation& rotation, const Operand& x, const Operand& y) {
  const std::int64_t width = x.columns / rotation.heads;
  launch_elements(stream, x.rows * Rotate::items(rotation, width), Rotate{rotation, x, y, width});
}

}  // namespace moebius::cuda
