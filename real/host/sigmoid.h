#pragma once

#include <cmath>

namespace moebius {

template <class Real>
Real sigmoid(Real x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace moebius
