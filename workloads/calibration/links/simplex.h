// The least of a function of a few variables without its derivative: Nelder and Mead's simplex.
#pragma once

#include <functional>
#include <vector>

namespace moebius {

using Loss = std::function<double(const std::vector<double>&)>;

// From `start` with first steps of `step`; the same result for the same input.
std::vector<double> least_of(const Loss& loss, std::vector<double> start, double step);

}  // namespace moebius
