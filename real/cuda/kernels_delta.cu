// Gated delta networks: a thread for each element of the convolution, a team for each value head of a
// sequence, whose threads have columns of its state of their own. Plain arithmetic, row by row.
#include "real/cuda/kernels.h"
#include "real/cuda/kernels_delta.h"
#include "real/cuda/launch.cuh"
#include "real/cuda/sigmoid.cuh"

namespace moebius::cuda {
namespace {

static_assert(2 * kLargestHead <= kScratch);

constexpr float kLengthEpsilon = 1e-6f;  // real/host/host_kernels_delta.h

MOEBIUS_DEVICE float softplus(float x) {
  return (x > 0 ? x : 0.0f) + log1pf(expf(-fabsf(x)));
}

// The row `distance` behind the first one of a sequence; before it what is kept, or nothing.
MOEBIUS_DEVICE float convolved(const Convolution& c, std::int64_t sequence, std::int64_t distance,
                               std::int64_t column) {
  if (distance >= 0) return load(c.x, c.rows.first[sequence] + distance, column);
  if (c.rows.past[sequence] == 0) return 0;
  return load(c.kept, c.rows.states[sequence], (c.width - 1 + distance) * c.x.columns + column);
}

struct Convolve {
  Convolution c;
  Operand y;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t row = index / c.x.columns, column = index % c.x.columns, sequence = c.rows.owner[row];
    const std::int64_t oldest = row - c.rows.first[sequence] - (c.width - 1);
    float sum = 0;
    for (std::int64_t i = 0; i < c.width; ++i)
      sum += load(c.weight, column, i) * convolved(c, sequence, oldest + i, column);
    store(y, index, sum * sigmoid(sum));
  }
};

// Oldest first: what a thread reads stands behind what it has written.
struct KeepLast {
  Convolution c;
  MOEBIUS_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t sequence = index / c.x.columns, column = index % c.x.columns;
    const std::int64_t count = c.rows.first[sequence + 1] - c.rows.first[sequence];
    for (std::int64_t i = 0; i < c.width - 1; ++i) {
      const float value = convolved(c, sequence, count - (c.width - 1) + i, column);
      store(c.kept, c.rows.states[sequence] * c.kept.columns + i * c.x.columns + column, value);
    }
  }
};

struct ValueHead {
  DeltaRule d;
  Operand o;

  // A row of queries or keys over its length, times `scale`.
  MOEBIUS_DEVICE void normalise(const Team& team, std::int64_t row, std::int64_t first, float scale,
                                float* to) const {
    const double squares = team.sum<double>(d.key_dim, [&](std::int64_t i) {
      const double value = load(d.qkv, row, first + i);
      return value * value;
    });
    const float factor = scale / sqrtf(static_cast<float>(squares) + kLengthEpsilon);
    team.each(d.key_dim, [&](std::int64_t i) { to[i] = load(d.qkv, row, first + i) * factor; });
  }

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t sequence = index / d.heads, head = index % d.heads;
    const std::int64_t key = head * d.key_heads / d.heads * d.key_dim, keys = d.key_heads * d.key_dim;
    const std::int64_t value = 2 * keys + head * d.value_dim;
    const std::int64_t state = d.rows.states[sequence] * d.state.columns + head * d.key_dim * d.value_dim;
    const float rate = expf(load(d.decay, 0, head)), bias = load(d.decay, 1, head);
    float *q = team.scratch(), *k = q + d.key_dim;
    if (d.rows.past[sequence] == 0)
      team.each(d.value_dim, [&](std::int64_t j) {
        for (std::int64_t i = 0; i < d.key_dim; ++i) store(d.state, state + i * d.value_dim + j, 0.0f);
      });
    for (std::int64_t row = d.rows.first[sequence]; row < d.rows.first[sequence + 1]; ++row) {
      team.sync();  // the last row is through with q and k
      normalise(team, row, key, 1 / sqrtf(static_cast<float>(d.key_dim)), q);
      normalise(team, row, keys + key, 1, k);
      team.sync();
      const float beta = sigmoid(load(d.gates, row, head));
      const float decay = expf(-rate * softplus(load(d.gates, row, d.heads + head) + bias));
      team.each(d.value_dim, [&](std::int64_t j) {
        float known = 0, result = 0;
        for (std::int64_t i = 0; i < d.key_dim; ++i)
          known += k[i] * decay * load(d.state, state + i * d.value_dim + j);
        const float error = beta * (load(d.qkv, row, value + j) - known);
        for (std::int64_t i = 0; i < d.key_dim; ++i) {
          const std::int64_t at = state + i * d.value_dim + j;
          const float next = decay * load(d.state, at) + k[i] * error;
          store(d.state, at, next);
          result += q[i] * next;
        }
        store(o, row * o.columns + head * d.value_dim + j, result);
      });
    }
  }
};

}  // namespace

void convolve(Stream stream, const Convolution& convolution, const Operand& y) {
  launch_elements(stream, y.elements(), Convolve{convolution, y});
  launch_elements(stream, convolution.rows.sequences * y.columns, KeepLast{convolution});
}

void delta_rule(Stream stream, const DeltaRule& rule, const Operand& o) {
  launch_teams(stream, rule.rows.sequences * rule.heads, ValueHead{rule, o});
}

}  // namespace moebius::cuda
