// Activations and the gate: real/host/host_kernels_mlp.h on a device.
#include "real/cuda/eight.cuh"
#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"
#include "real/cuda/quantise.cuh"
#include "real/cuda/sigmoid.cuh"

namespace moebius::cuda {
namespace {

constexpr float kSqrtHalf = 0.70710678118654752f, kInverseSqrtTwoPi = 0.39894228040143268f;

MOEBIUS_DEVICE float gelu(float x) {
  return x / 2 * (1 + erff(x * kSqrtHalf));
}
MOEBIUS_DEVICE float gelu_slope(float x) {
  return (1 + erff(x * kSqrtHalf)) / 2 + x * expf(-x * x / 2) * kInverseSqrtTwoPi;
}

MOEBIUS_DEVICE float weight_of(const Operand& row_weight, std::int64_t row) {
  return row_weight.data == nullptr ? 1.0f : load(row_weight, row);
}

// Before the row's weight.
MOEBIUS_DEVICE float activated(const Activation& a, std::int64_t n, std::int64_t row, std::int64_t c) {
  const float x = load(a.x, row, c);
  return a.gated ? x * sigmoid(x) * load(a.x, row, n + c) : gelu(x);
}

struct Activate {
  Activation a;
  Operand y;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t row = index / y.columns;
    store(y, index, activated(a, y.columns, row, index % y.columns) * weight_of(a.row_weight, row));
  }
};

// Eight of a row that is gated.
struct ActivateEight {
  Activation a;
  Operand y;
  std::uint32_t of_row;  // eights
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::uint32_t row = static_cast<std::uint32_t>(i) / of_row,
                        at = static_cast<std::uint32_t>(i) % of_row;
    const std::int64_t from = row * a.x.columns + at * kEight;
    const Eight x = load_eight(a.x, from), right = load_eight(a.x, from + y.columns);
    const float weight = weight_of(a.row_weight, row);
    Eight found;
    for (int j = 0; j < kEight; ++j) found.of[j] = x.of[j] * sigmoid(x.of[j]) * right.of[j] * weight;
    store_eight(y, i * kEight, found);
  }
};

// The same back.
struct ActivateBackEight {
  Activation a;
  Operand dy, dx;
  std::uint32_t of_row;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::uint32_t row = static_cast<std::uint32_t>(i) / of_row,
                        at = static_cast<std::uint32_t>(i) % of_row;
    const std::int64_t left = row * a.x.columns + at * kEight;
    const Eight d = load_eight(dy, i * kEight), x = load_eight(a.x, left),
                right = load_eight(a.x, left + dy.columns);
    const float weight = weight_of(a.row_weight, row);
    Eight dleft, dright;
    for (int j = 0; j < kEight; ++j) {
      const float s = sigmoid(x.of[j]), of = d.of[j] * weight;
      dleft.of[j] = of * right.of[j] * s * (1 + x.of[j] * (1 - s));
      dright.of[j] = of * x.of[j] * s;
    }
    store_eight(dx, left, dleft);
    store_eight(dx, left + dy.columns, dright);
  }
};

// Both halves of gated rows in eights, few enough to be counted in 32 bits.
bool activates_in_eights(const Activation& a, const Operand& y) {
  return a.gated && rows_in_eights(a.x) && rows_in_eights(y) && y.elements() / kEight < std::int64_t{1} << 31;
}

struct GateBySigmoid {
  Operand x, z, y;
  std::int64_t of_gate;  // elements
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    store(y, i, load(x, i) * sigmoid(load(z, i / of_gate)));
  }
};

// With s = sigmoid(z): dx = dy * s, dz = s * (1 - s) * sum of dy * x.
struct GateRowBack {
  RowGateGrad g;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const std::int64_t n = g.dy.columns;
    const float s = sigmoid(load(g.z, row));
    team.each(n, [&](std::int64_t c) { store(g.dx, row * n + c, load(g.dy, row, c) * s); });
    const double sum = team.sum<double>(
        n, [&](std::int64_t c) { return static_cast<double>(load(g.dy, row, c)) * load(g.x, row, c); });
    team.each(1, [&](std::int64_t) { store(g.dz, row, static_cast<float>(sum) * s * (1 - s)); });
  }
};

// The same values in two formats, each rounded by itself.
struct ActivateQuantised {
  Activation a;
  Operand y, codes;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const float weight = weight_of(a.row_weight, row);
    quantise_row(team, codes, row, [&](std::int64_t c) {
      const float value = activated(a, y.columns, row, c) * weight;
      store(y, row * y.columns + c, value);
      return value;
    });
  }
};

struct ActivateBack {
  Activation a;
  Operand dy, dx, drow_weight;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const std::int64_t n = dy.columns, first = row * a.x.columns;
    const float weight = weight_of(a.row_weight, row);
    team.each(n, [&](std::int64_t c) {
      const float d = load(dy, row, c) * weight, x = load(a.x, row, c);
      if (!a.gated) return store(dx, first + c, d * gelu_slope(x));
      const float s = sigmoid(x), right = load(a.x, row, n + c);
      store(dx, first + c, d * right * s * (1 + x * (1 - s)));
      store(dx, first + n + c, d * x * s);
    });
    if (drow_weight.data == nullptr) return;
    const double sum = team.sum<double>(
        n, [&](std::int64_t c) { return static_cast<double>(load(dy, row, c)) * activated(a, n, row, c); });
    team.each(1, [&](std::int64_t) { store(drow_weight, row, static_cast<float>(sum)); });
  }
};

// The gradient of the rows' weights alone, of gated rows in eights.
struct RowWeightBack {
  Activation a;
  Operand dy, drow_weight;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const double sum = team.sum<double>(dy.columns / kEight, [&](std::int64_t i) {
      const std::int64_t left = row * a.x.columns + i * kEight;
      const Eight d = load_eight(dy, row * dy.columns + i * kEight), x = load_eight(a.x, left),
                  right = load_eight(a.x, left + dy.columns);
      double of_eight = 0;
      for (int j = 0; j < kEight; ++j)
        of_eight += static_cast<double>(d.of[j]) * (x.of[j] * sigmoid(x.of[j]) * right.of[j]);
      return of_eight;
    });
    team.each(1, [&](std::int64_t) { store(drow_weight, row, static_cast<float>(sum)); });
  }
};

// The scores of the chosen experts of one row.
struct Scores {
  const Gate& g;
  const std::int32_t* choices;
  std::int64_t row;
  float maximum = -INFINITY, sum = 0;

  MOEBIUS_DEVICE Scores(const Gate& gate, std::int64_t which)
      : g(gate), choices(gate.choices + which * gate.active), row(which) {
    for (std::int64_t i = 0; i < g.active; ++i) maximum = fmaxf(maximum, logit(i));
    for (std::int64_t i = 0; i < g.active; ++i) sum += score(i);
  }
  MOEBIUS_DEVICE std::int32_t expert(std::int64_t i) const {
    return choices[i] < 0 ? -1 - choices[i] : choices[i];
  }
  MOEBIUS_DEVICE float logit(std::int64_t i) const { return load(g.logits, row, expert(i)); }
  MOEBIUS_DEVICE float score(std::int64_t i) const {
    return g.sigmoid ? sigmoid(logit(i)) : expf(logit(i) - maximum);
  }
  MOEBIUS_DEVICE float share(std::int64_t i) const { return score(i) / sum; }
};

struct GateRow {
  Gate g;
  Operand weights;
  MOEBIUS_DEVICE void operator()(std::int64_t row) const {
    const Scores scores(g, row);
    for (std::int64_t i = 0; i < g.active; ++i) store(weights, row * g.active + i, scores.share(i) * g.scale);
  }
};

// With shares p and d = dw - sum(p*dw): softmax dl = scale*p*d; sigmoid, of slope s*(1-s), dl =
// scale*p*(1-s)*d.
struct GateGradRow {
  Gate g;
  Operand dweights, dlogits;
  MOEBIUS_DEVICE void operator()(std::int64_t row) const {
    const Scores scores(g, row);
    float mean = 0;
    for (std::int64_t i = 0; i < g.active; ++i) mean += scores.share(i) * load(dweights, row, i);
    for (std::int64_t i = 0; i < g.active; ++i) {
      const float slope = g.sigmoid ? 1 - sigmoid(scores.logit(i)) : 1.0f;
      store(dlogits, row * dlogits.columns + scores.expert(i),
            g.scale * scores.share(i) * slope * (load(dweights, row, i) - mean));
    }
  }
};

}  // namespace

void gate_by_sigmoid(Stream stream, const Operand& x, const Operand& z, const Operand& y) {
  launch_elements(stream, y.elements(), GateBySigmoid{x, z, y, x.columns / z.columns});
}

void row_gate_grad(Stream stream, const RowGateGrad& grad) {
  launch_teams(stream, grad.dy.rows, GateRowBack{grad});
}

void activation(Stream stream, const Activation& activation, const Operand& y) {
  if (!activates_in_eights(activation, y))
    return launch_elements(stream, y.elements(), Activate{activation, y});
  launch_elements(stream, y.elements() / kEight,
                  ActivateEight{activation, y, static_cast<std::uint32_t>(y.columns / kEight)});
}

void activation_quantised(Stream stream, const Activation& activation, const Operand& y,
                          const Operand& codes) {
  launch_teams(stream, y.rows, ActivateQuantised{activation, y, codes});
}

void activation_grad(Stream stream, const Activation& activation, const Operand& dy, const Operand& dx,
                     const Operand& drow_weight) {
  if (!activates_in_eights(activation, dy) || !rows_in_eights(dx))
    return launch_teams(stream, dy.rows, ActivateBack{activation, dy, dx, drow_weight});
  launch_elements(stream, dy.elements() / kEight,
                  ActivateBackEight{activation, dy, dx, static_cast<std::uint32_t>(dy.columns / kEight)});
  if (drow_weight.data != nullptr) launch_teams(stream, dy.rows, RowWeightBack{activation, dy, drow_weight});
}

void gate(Stream stream, const Gate& gate, const Operand& weights) {
  launch_elements(stream, weights.rows, GateRow{gate, weights});
}

void gate_grad(Stream stream, const Gate& gate, const Operand& dweights, const Operand& dlogits) {
  const std::int64_t size = element_size(dlogits.storage);
  fill(stream, static_cast<char*>(dlogits.data) + dlogits.first_row * dlogits.columns * size, 0,
       static_cast<std::size_t>(dlogits.elements() * size));
  launch_elements(stream, dlogits.rows, GateGradRow{gate, dweights, dlogits});
}

}  // namespace moebius::cuda
