// Central finite differences in double precision: the independent answer that every gradient is compared
// with.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/routing/routing.h"

namespace moebius {

// Numbers in [-1, 1), the same in every run.
inline std::vector<double> some_numbers(std::size_t count, std::uint64_t seed) {
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = 2 * random_unit(random_bits(seed, i)) - 1;
  return numbers;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Checks every element of `gradient` of f at x. The error of a central difference is h^2 f'''/6 + 1e-16 f/h:
// below 1e-9 here.
inline void require_gradient(const std::function<double(const std::vector<double>&)>& f,
                             std::vector<double> x, const std::vector<double>& gradient) {
  constexpr double kStep = 1e-5;
  REQUIRE(gradient.size() == x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double above = f(x);
    x[i] = at - kStep;
    const double below = f(x);
    x[i] = at;
    INFO("element " << i);
    CHECK(gradient[i] == Approx((above - below) / (2 * kStep)).epsilon(1e-5).margin(1e-8));
  }
}

}  // namespace moebius
