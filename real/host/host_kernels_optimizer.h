// The Adam update on the CPU.
#pragma once

#include <span>

namespace moebius {

struct AdamSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
};

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
