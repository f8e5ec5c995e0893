// Activations of dense and expert layers and the gate that weighs experts, on the CPU, forward and backward.
#pragma once

#include <cstdint>
#include <span>

namespace moebius {

enum class ActivationForm : std::uint8_t {
  kGated,  // x[rows, 2n] -> silu(left) * right
  kPlain,  // x[rows, n] -> gelu(x), with the error function
};

struct ActivationShape {
  std::int64_t columns = 0;  // n, of the result
  ActivationForm form = ActivationForm::kGated;
};

// y[rows, n], each row times row_weight (empty: 1).
template <class Real>
void activation(const ActivationShape& shape, std::span<const Real> x, std::span<const Real> row_weight,
                std::span<Real> y);

// y times silu(z), element by element; y times sigmoid(z), where each z is the gate of as many elements.
template <class Real>
void gate_by_silu(std::span<const Real> z, std::span<Real> y);
template <class Real>
void gate_by_sigmoid(std::span<const Real> z, std::span<Real> y);

template <class Real>
struct SigmoidGateInputs {
  std::span<const Real> dy, x, z;
};
// Of y = x times sigmoid(z); both are overwritten.
template <class Real>
void gate_by_sigmoid_grad(const SigmoidGateInputs<Real>& inputs, std::span<Real> dx, std::span<Real> dz);

template <class Real>
struct ActivationInputs {
  std::span<const Real> dy, x, row_weight;  // row_weight empty: 1
};
// dx is overwritten; so is d_row_weight, unless empty.
template <class Real>
void activation_grad(const ActivationShape& shape, const ActivationInputs<Real>& inputs, std::span<Real> dx,
                     std::span<Real> d_row_weight);

// How a token weighs its experts: scores of the chosen ones, divided by their sum, times scale.
struct GateShape {
  std::int64_t experts = 0, active = 0;
  bool sigmoid = false;  // scores are sigmoid(logit); otherwise exp(logit)
  double scale = 1;
};

// logits[rows, experts], choices[rows*active] as in Route::choices() -> weights[rows, active]; dropped tokens
// have weights too, which nothing reads.
template <class Real>
void gate(const GateShape& shape, std::span<const Real> logits, std::span<const std::int32_t> choices,
          std::span<Real> weights);

template <class Real>
struct GateInputs {
  std::span<const Real> dweights, logits;
  std::span<const std::int32_t> choices;
};
// dlogits is overwritten; experts that were not chosen get zero.
template <class Real>
void gate_grad(const GateShape& shape, const GateInputs<Real>& inputs, std::span<Real> dlogits);

}  // namespace moebius
