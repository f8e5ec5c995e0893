#include "real/host/host_kernels_mlp.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/sigmoid.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

template <class Real>
Real gelu(Real x) {
  return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<Real>));
}

// d gelu / dx = Phi(x) + x * phi(x), with the normal distribution's function and density.
template <class Real>
Real gelu_slope(Real x) {
  const Real density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>);
  return (1 + std::erf(x / std::numbers::sqrt2_v<Real>)) / 2 + x * density;
}

std::int64_t input_columns(const ActivationShape& shape) {
  return shape.form == ActivationForm::kGated ? 2 * shape.columns : shape.columns;
}

// y = silu(left)*right of one row, and its gradients: silu'(x) = s*(1 + x*(1-s)).
template <class Real>
struct GatedRow {
  const Real* x;
  std::int64_t n;
  Real value(std::int64_t c) const { return x[c] * sigmoid(x[c]) * x[n + c]; }
  void back(std::int64_t c, Real dy, Real* dx) const {
    const Real s = sigmoid(x[c]);
    dx[c] = dy * x[n + c] * s * (1 + x[c] * (1 - s));
    dx[n + c] = dy * x[c] * s;
  }
};

template <class Real>
struct PlainRow {
  const Real* x;
  Real value(std::int64_t c) const { return gelu(x[c]); }
  void back(std::int64_t c, Real dy, Real* dx) const { dx[c] = dy * gelu_slope(x[c]); }
};

// Calls visit(row index, GatedRow or PlainRow) for each row of x.
template <class Real, class Visit>
void for_each_row(const ActivationShape& shape, std::span<const Real> x, const Visit& visit) {
  const std::int64_t width = input_columns(shape);
  CHECK(static_cast<std::int64_t>(x.size()) % width == 0, fmt::format("{} by {}", x.size(), width));
  for (std::int64_t row = 0; row * width < static_cast<std::int64_t>(x.size()); ++row) {
    switch (shape.form) {
      case ActivationForm::kGated:
        visit(row, GatedRow<Real>{&x[row * width], shape.columns});
        break;
      case ActivationForm::kPlain:
        visit(row, PlainRow<Real>{&x[row * width]});
        break;
    }
  }
}

std::size_t elements_of_gate(std::size_t elements, std::size_t gates) {
  if (elements == 0) return 1;
  CHECK(gates > 0 && elements % gates == 0, fmt::format("{} gates for {} elements", gates, elements));
  return elements / gates;
}

// Scores of the chosen experts of one row, divided by their sum.
template <class Real>
std::vector<Real> shares(const GateShape& shape, const Real* logits, const std::int32_t* choices) {
  std::vector<Real> scores(shape.active);
  Real maximum = logits[chosen_expert(choices[0])];
  for (std::int64_t i = 1; i < shape.active; ++i)
    maximum = std::max(maximum, logits[chosen_expert(choices[i])]);
  Real sum = 0;
  for (std::int64_t i = 0; i < shape.active; ++i) {
    const Real logit = logits[chosen_expert(choices[i])];
    sum += scores[i] = shape.sigmoid ? sigmoid(logit) : std::exp(logit - maximum);
  }
  for (Real& score : scores) score /= sum;
  return scores;
}

}  // namespace

template <class Real>
void activation(const ActivationShape& shape, std::span<const Real> x, std::span<const Real> row_weight,
                std::span<Real> y) {
  const std::int64_t n = shape.columns;
  for_each_row(shape, x, [&](std::int64_t row, const auto& values) {
    const Real weight = row_weight.empty() ? Real(1) : row_weight[row];
    for (std::int64_t c = 0; c < n; ++c) y[row * n + c] = values.value(c) * weight;
  });
}

template <class Real>
void activation_grad(const ActivationShape& shape, const ActivationInputs<Real>& inputs, std::span<Real> dx,
                     std::span<Real> d_row_weight) {
  const std::int64_t n = shape.columns;
  for_each_row(shape, inputs.x, [&](std::int64_t row, const auto& values) {
    const Real weight = inputs.row_weight.empty() ? Real(1) : inputs.row_weight[row];
    double dweight = 0;
    for (std::int64_t c = 0; c < n; ++c) {
      const Real dy = inputs.dy[row * n + c];
      values.back(c, dy * weight, &dx[row * input_columns(shape)]);
      if (!d_row_weight.empty()) dweight += static_cast<double>(dy) * values.value(c);
    }
    if (!d_row_weight.empty()) d_row_weight[row] = static_cast<Real>(dweight);
  });
}

template <class Real>
void gate(const GateShape& shape, std::span<const Real> logits, std::span<const std::int32_t> choices,
          std::span<Real> weights) {
  const std::int64_t rows = static_cast<std::int64_t>(logits.size()) / shape.experts;
  CHECK(static_cast<std::int64_t>(choices.size()) == rows * shape.active && weights.size() == choices.size(),
        fmt::format("{} rows, {} choices, {} weights", rows, choices.size(), weights.size()));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto share = shares(shape, &logits[row * shape.experts], &choices[row * shape.active]);
    for (std::int64_t i = 0; i < shape.active; ++i) {
      weights[row * shape.active + i] = static_cast<Real>(share[i] * shape.scale);
    }
  }
}

// With shares p and d = dw - sum(p*dw): softmax dl = scale*p*d; sigmoid, whose score s has slope s*(1-s), dl
// = scale*p*(1-s)*d.
template <class Real>
void gate_grad(const GateShape& shape, const GateInputs<Real>& inputs, std::span<Real> dlogits) {
  std::fill(dlogits.begin(), dlogits.end(), Real(0));
  const std::int64_t rows = static_cast<std::int64_t>(inputs.logits.size()) / shape.experts;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Real* logits = &inputs.logits[row * shape.experts];
    const std::int32_t* choices = &inputs.choices[row * shape.active];
    const Real* dweights = &inputs.dweights[row * shape.active];
    const auto share = shares(shape, logits, choices);
    Real mean = 0;
    for (std::int64_t i = 0; i < shape.active; ++i) mean += share[i] * dweights[i];
    for (std::int64_t i = 0; i < shape.active; ++i) {
      const std::int32_t expert = chosen_expert(choices[i]);
      const Real slope = shape.sigmoid ? 1 - sigmoid(logits[expert]) : Real(1);
      dlogits[row * shape.experts + expert] =
          static_cast<Real>(shape.scale) * share[i] * slope * (dweights[i] - mean);
    }
  }
}

template <class Real>
void gate_by_silu(std::span<const Real> z, std::span<Real> y) {
  CHECK(z.size() == y.size(), fmt::format("{} gates for {} elements", z.size(), y.size()));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= z[i] * sigmoid(z[i]);
}

template <class Real>
void gate_by_sigmoid(std::span<const Real> z, std::span<Real> y) {
  const std::size_t of_gate = elements_of_gate(y.size(), z.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= sigmoid(z[i / of_gate]);
}

// dx = dy * s and dz = s * (1 - s) * sum of dy * x, with s = sigmoid(z).
template <class Real>
void gate_by_sigmoid_grad(const SigmoidGateInputs<Real>& inputs, std::span<Real> dx, std::span<Real> dz) {
  const std::size_t of_gate = elements_of_gate(dx.size(), dz.size());
  for (std::size_t gate = 0; gate < dz.size(); ++gate) {
    const Real s = sigmoid(inputs.z[gate]);
    double sum = 0;
    for (std::size_t i = gate * of_gate; i < (gate + 1) * of_gate; ++i) {
      dx[i] = inputs.dy[i] * s;
      sum += static_cast<double>(inputs.dy[i]) * inputs.x[i];
    }
    dz[gate] = static_cast<Real>(sum * s * (1 - s));
  }
}

#define MOEBIUS_INSTANTIATE(Real)                                                                       \
  template void activation(const ActivationShape&, std::span<const Real>, std::span<const Real>,        \
                           std::span<Real>);                                                            \
  template void activation_grad(const ActivationShape&, const ActivationInputs<Real>&, std::span<Real>, \
                                std::span<Real>);                                                       \
  template void gate_by_silu(std::span<const Real>, std::span<Real>);                                   \
  template void gate_by_sigmoid(std::span<const Real>, std::span<Real>);                                \
  template void gate_by_sigmoid_grad(const SigmoidGateInputs<Real>&, std::span<Real>, std::span<Real>); \
  template void gate(const GateShape&, std::span<const Real>, std::span<const std::int32_t>,            \
                     std::span<Real>);                                                                  \
  template void gate_grad(const GateShape&, const GateInputs<Real>&, std::span<Real>)
MOEBIUS_INSTANTIATE(float);
MOEBIUS_INSTANTIATE(double);
#undef MOEBIUS_INSTANTIATE

}  // namespace moebius
