#include "real/host/host_kernels_optimizer.h"

#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

template <class Real>
void adam(const AdamSettings& settings, int step, std::span<const Real> gradient,
          const AdamState<Real>& state) {
  CHECK(step >= 1 && gradient.size() == state.master.size() && gradient.size() == state.first.size() &&
            gradient.size() == state.second.size(),
        fmt::format("step {}, {} gradients, {} weights", step, gradient.size(), state.master.size()));
  const double first_correction = 1 - std::pow(settings.beta1, step);
  const double second_correction = 1 - std::pow(settings.beta2, step);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double g = gradient[i] * settings.gradient_scale;
    const double first = settings.beta1 * state.first[i] + (1 - settings.beta1) * g;
    const double second = settings.beta2 * state.second[i] + (1 - settings.beta2) * g * g;
    const double root = std::sqrt(second / second_correction) + settings.epsilon;
    state.first[i] = static_cast<Real>(first);
    state.second[i] = static_cast<Real>(second);
    state.master[i] =
        static_cast<Real>(state.master[i] - settings.learning_rate * first / first_correction / root);
  }
}

template void adam(const AdamSettings&, int, std::span<const float>, const AdamState<float>&);
template void adam(const AdamSettings&, int, std::span<const double>, const AdamState<double>&);

}  // namespace moebius
