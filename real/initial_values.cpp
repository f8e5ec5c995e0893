#include "real/initial_values.h"

#include <algorithm>
#include <cmath>

#include "workloads/routing/routing.h"

namespace moebius {

InitialValues initial_values_of(const Tensor& tensor, std::uint64_t seed) {
  constexpr std::uint64_t kParameterStream = 0x70617261;
  // Of the sum of four whole numbers below 2^16, each with a variance of (2^32 - 1) / 12.
  const double deviation = std::sqrt((0x1p32 - 1) / 3);
  return {.parameter = random_bits(seed, kParameterStream, static_cast<std::uint64_t>(tensor.role),
                                   static_cast<std::uint64_t>(tensor.layer + 1)),
          .constant = std::max(0.0, -tensor.init),
          .scale = std::max(0.0, tensor.init) / deviation,
          .rows = tensor.rows,
          .columns = tensor.columns,
          .first_expert = tensor.first_expert,
          .first_row = tensor.first_row,
          .first_column = tensor.first_column};
}

std::vector<double> initial_values(const Tensor& tensor, std::uint64_t seed) {
  const InitialValues of = initial_values_of(tensor, seed);
  const std::int64_t experts = std::max(tensor.experts, 1);
  std::vector<double> values(static_cast<std::size_t>(experts * tensor.rows * tensor.columns));
  auto value = values.begin();
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    for (std::int64_t row = 0; row < tensor.rows; ++row) {
      const std::uint64_t key = of.row_key(expert, row);
      for (std::int64_t column = 0; column < tensor.columns; ++column) *value++ = of.value(key, column);
    }
  }
  return values;
}

}  // namespace moebius
