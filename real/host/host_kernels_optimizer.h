// The Adam update on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace moebius {

struct AdamSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  double gradient_scale = 1;  // of an update: see clip_factor()
};

// What gradients are multiplied by so that their norm over all parameters is at most `most` (Pascanu et al.
// 2013); 1, exactly, where it is less. The small number is that of PyTorch's clip_grad_norm_ and Megatron-LM's.
inline double clip_factor(double most, double squares) {
  constexpr double kEpsilon = 1e-6;
  return std::min(1.0, most / (std::sqrt(squares) + kEpsilon));
}

template <class Real>
struct AdamState {
  std::span<Real> master, first, second;
};

// One update after `step` >= 1 updates in all: first = b1*first + (1-b1)*g, second = b2*second + (1-b2)*g^2,
// master -= rate * (first/(1-b1^step)) / (sqrt(second/(1-b2^step)) + epsilon).
template <class Real>
void adam(const AdamSettings& settings, int step, std::span<const Real> gradient,
          const AdamState<Real>& state);

}  // namespace moebius
