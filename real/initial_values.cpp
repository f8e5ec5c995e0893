#include "real/initial_values.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "workloads/routing/routing.h"

namespace moebius {
namespace {

constexpr std::uint64_t kParameterStream = 0x70617261;

// Box-Muller: one standard normal number from two uniform ones.
double normal(std::uint64_t bits) {
  const double radius = std::sqrt(-2 * std::log(1 - random_unit(bits)));
  return radius * std::cos(2 * std::numbers::pi * random_unit(random_bits(bits, kParameterStream)));
}

}  // namespace

std::vector<double> initial_values(const Tensor& tensor, std::uint64_t seed) {
  const std::int64_t experts = std::max(tensor.experts, 1);
  std::vector<double> values(experts * tensor.rows * tensor.columns, std::max(0.0, -tensor.init));
  if (tensor.init <= 0) return values;
  const std::uint64_t parameter =
      random_bits(seed, kParameterStream, static_cast<std::uint64_t>(tensor.role), tensor.layer + 1);
  auto value = values.begin();
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    for (std::int64_t row = 0; row < tensor.rows; ++row) {
      for (std::int64_t column = 0; column < tensor.columns; ++column) {
        *value++ = tensor.init * normal(random_bits(parameter, tensor.first_expert + expert,
                                                    tensor.first_row + row, tensor.first_column + column));
      }
    }
  }
  return values;
}

}  // namespace moebius
