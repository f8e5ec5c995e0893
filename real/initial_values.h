// The numbers a parameter starts from. Each element has its own key (seed, role, layer, expert, row, column
// of the whole matrix), so that every sharding starts from the same model.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/fragment.h"

namespace moebius {

// Of the shard that `tensor` describes, row-major, experts one after the other: normal with standard
// deviation tensor.init, the constant -tensor.init when that is negative, zeros when it is 0.
std::vector<double> initial_values(const Tensor& tensor, std::uint64_t seed);

}  // namespace moebius
