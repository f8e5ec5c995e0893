#pragma once

#include <algorithm>
#include <vector>

namespace moebius {

// Of `number`, ascending, up to `most`.
inline std::vector<int> divisors(int number, int most) {
  std::vector<int> all;
  for (int i = 1; i <= std::min(number, most); ++i) {
    if (number % i == 0) all.push_back(i);
  }
  return all;
}

}  // namespace moebius
