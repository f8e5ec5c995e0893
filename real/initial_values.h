// The numbers a parameter starts from. Each element has its own key (seed, role, layer, expert, row, column
// of the whole matrix), so that every sharding starts from the same model, and a device makes its part by
// itself.
#pragma once

#include <cstdint>
#include <vector>

#include "real/initial_value.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

// Normal with standard deviation tensor.init as far as the sum of four uniform numbers is: at most 3.46
// deviations. The constant -tensor.init when that is negative, zeros when it is 0.
InitialValues initial_values_of(const Tensor& tensor, std::uint64_t seed);
std::vector<double> initial_values(const Tensor& tensor, std::uint64_t seed);

}  // namespace moebius
