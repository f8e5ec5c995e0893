// The numbers a parameter starts from. Each element has its own key (seed, role, layer, expert, row, column
// of the whole matrix), so that every sharding starts from the same model, and a device makes its part by
// itself.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "models/model.h"
#include "real/initial_value.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

// Rows of whole matrices; all 0: there is one alone.
using StackedRows = std::array<std::int64_t, 3>;
// [q | k | v] and [gate | up] of the model.
StackedRows stacked_rows(const Tensor& parameter, const Model& model);
using StackedRowsOf = std::function<StackedRows(const Tensor& parameter)>;

// Normal with standard deviation tensor.init as far as the sum of four uniform numbers is: at most 3.46
// deviations. The constant -tensor.init when that is negative, zeros when it is 0.
//
// `stacked`: of a parameter of several matrices, one below the other, of each of which a rank has its share.
InitialValues initial_values_of(const Tensor& tensor, std::uint64_t seed, const StackedRows& stacked = {});
std::vector<double> initial_values(const Tensor& tensor, std::uint64_t seed, const StackedRows& stacked = {});

}  // namespace moebius
