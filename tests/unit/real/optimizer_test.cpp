#include "real/host/host_kernels_optimizer.h"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

namespace moebius {

using Numbers = std::vector<double>;

TEST_CASE("the first Adam step moves by the learning rate against the gradient's sign") {
  // With zero moments and bias correction first/(1-b1) = g and sqrt(second/(1-b2)) = |g|.
  Numbers master = {1, 1}, first(2, 0.0), second(2, 0.0);
  const Numbers gradient = {0.3, -20};
  adam<double>({.learning_rate = 0.1, .epsilon = 0}, 1, gradient, {master, first, second});
  CHECK(master[0] == Approx(0.9));
  CHECK(master[1] == Approx(1.1));
}

TEST_CASE("two Adam steps by hand") {
  Numbers master = {0}, first = {0}, second = {0};
  const AdamSettings settings{.learning_rate = 1, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1};
  adam<double>(settings, 1, Numbers{2}, {master, first, second});
  CHECK(first[0] == Approx(1));          // 0.5*0 + 0.5*2
  CHECK(second[0] == Approx(1));         // 0.25*4
  CHECK(master[0] == Approx(-2.0 / 3));  // (1/0.5) / (sqrt(1/0.25) + 1)
  adam<double>(settings, 2, Numbers{-4}, {master, first, second});
  CHECK(first[0] == Approx(-1.5));   // 0.5*1 - 0.5*4
  CHECK(second[0] == Approx(4.75));  // 0.75*1 + 0.25*16
  const double step = (-1.5 / 0.75) / (std::sqrt(4.75 / 0.4375) + 1);
  CHECK(master[0] == Approx(-2.0 / 3 - step));
}

}  // namespace moebius
