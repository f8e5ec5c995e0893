// Of measurements that scatter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace moebius {

// The middle one, of an even number the upper of the two; there must be one.
inline double upper_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace moebius
