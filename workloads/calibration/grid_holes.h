// Grid points that no measured row tells anything of. Part of the fit (fit_table.h).
#pragma once

#include <cstddef>
#include <vector>

namespace moebius {

// `values`: corrections [site][axis 0][axis 1]...; zero is a hole. Each becomes the mean, in logarithms, of
// the nearest values of its site in both directions of every axis, near ones counting more; one whose lines
// are all empty waits until they are filled. Sites without any value stay as they are.
void fill_holes(std::vector<double>& values, const std::vector<std::size_t>& axis_sizes);

}  // namespace moebius
