#include "real/host/host_kernels_norm.h"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/real/finite_difference.h"

namespace moebius {

using Numbers = std::vector<double>;

TEST_CASE("RMSNorm divides by the root of the mean square") {
  const Numbers x = {3, 4}, weight = {1, 2};
  Numbers y(2);
  rms_norm<double>(x, weight, y);
  const double rms = std::sqrt(12.5 + kNormEpsilon);  // (9 + 16) / 2
  CHECK(y[0] == Approx(3 / rms));
  CHECK(y[1] == Approx(8 / rms));
}

TEST_CASE("gradients of RMSNorm agree with finite differences") {
  const std::size_t rows = 3, columns = 5;
  const Numbers x = some_numbers(rows * columns, 1), weight = some_numbers(columns, 2),
                dy = some_numbers(rows * columns, 3);
  Numbers dx(x.size()), dweight(columns, 0.0);
  rms_norm_grad<double>(dy, x, weight, {dx, dweight});
  const auto loss = [&](const Numbers& at_x, const Numbers& at_weight) {
    Numbers y(x.size());
    rms_norm<double>(at_x, at_weight, y);
    return dot(y, dy);
  };
  require_gradient([&](const Numbers& at) { return loss(at, weight); }, x, dx);
  require_gradient([&](const Numbers& at) { return loss(x, at); }, weight, dweight);
}

// As ranks do that have some columns of each row: the mean of their means is the row's.
TEST_CASE("RMSNorm and its gradients in halves of rows are those of whole rows") {
  const std::size_t rows = 3, columns = 8, half = columns / 2;
  const Numbers x = some_numbers(rows * columns, 1), weight = some_numbers(columns, 2),
                dy = some_numbers(rows * columns, 3);
  Numbers y(x.size()), dx(x.size()), dweight(columns, 0.0);
  rms_norm<double>(x, weight, y);
  rms_norm_grad<double>(dy, x, weight, {dx, dweight});
  const auto part = [&](const Numbers& whole, std::size_t first) {
    Numbers some;
    for (std::size_t i = first; i < whole.size(); i += columns)
      some.insert(some.end(), whole.begin() + i, whole.begin() + i + half);
    return some;
  };
  Numbers squares(rows), projections(rows);
  for (const std::size_t first : {std::size_t{0}, half}) {
    const Numbers own = mean_squares<double>(part(x, first), half),
                  product = mean_projections<double>(part(dy, first), part(x, first), part(weight, first));
    for (std::size_t row = 0; row < rows; ++row)
      squares[row] += own[row] / 2, projections[row] += product[row] / 2;
  }
  for (const std::size_t first : {std::size_t{0}, half}) {
    const Numbers w = part(weight, first);
    Numbers some(rows * half), dsome(rows * half), dw(half, 0.0);
    rms_norm<double>(part(x, first), w, squares, some, kNormEpsilon);
    rms_norm_grad<double>(part(dy, first), part(x, first), w, KnownMeans{squares, projections}, {dsome, dw},
                          kNormEpsilon);
    const Numbers of_y = part(y, first), of_dx = part(dx, first), of_dw = part(dweight, first);
    for (std::size_t i = 0; i < some.size(); ++i) {
      CHECK(some[i] == Approx(of_y[i]));
      CHECK(dsome[i] == Approx(of_dx[i]));
    }
    for (std::size_t i = 0; i < half; ++i) CHECK(dw[i] == Approx(of_dw[i]));
  }
}

TEST_CASE("the weight gradient of RMSNorm is added to what is there") {
  const Numbers x = some_numbers(4, 1), weight = some_numbers(4, 2), dy = some_numbers(4, 3);
  Numbers dx(4), once(4, 0.0), twice(4, 0.0);
  rms_norm_grad<double>(dy, x, weight, {dx, once});
  rms_norm_grad<double>(dy, x, weight, {dx, twice});
  rms_norm_grad<double>(dy, x, weight, {dx, twice});
  for (int i = 0; i < 4; ++i) CHECK(twice[i] == Approx(2 * once[i]));
}

TEST_CASE("rotary: position 0 stays, turning back undoes turning forward") {
  const RotaryShape shape{.columns = 12, .heads = 2, .rotated = 4, .sequence_rows = 5};
  const Numbers x = some_numbers(10 * 12, 1);
  Numbers y = x;
  rotate<double>(y, shape, Turn::kForward);
  for (int c = 0; c < 12; ++c) {
    CHECK(y[c] == x[c]);                    // first row of the first sequence
    CHECK(y[5 * 12 + c] == x[5 * 12 + c]);  // and of the second
  }
  CHECK(y[12 + 2] != x[12 + 2]);
  rotate<double>(y, shape, Turn::kBack);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == Approx(x[i]));
}

TEST_CASE("rotary turns only the last columns of each head, by position times frequency") {
  // One head of six columns, four of them turn: pairs (2, 4) and (3, 5) with frequencies 1 and 10000^(-1/2) =
  // 0.01.
  const RotaryShape shape{.columns = 6, .heads = 1, .rotated = 4, .sequence_rows = 1, .first_position = 7};
  Numbers x = {9, 8, 1, 0, 0, 1};
  rotate<double>(x, shape, Turn::kForward);
  CHECK(x[0] == 9);
  CHECK(x[1] == 8);
  CHECK(x[2] == Approx(std::cos(7.0)));
  CHECK(x[4] == Approx(std::sin(7.0)));
  CHECK(x[3] == Approx(-std::sin(0.07)));
  CHECK(x[5] == Approx(std::cos(0.07)));
}

TEST_CASE("rotary: scores depend on the distance of positions only") {
  const Numbers q = some_numbers(8, 1), k = some_numbers(8, 2);
  const auto score = [&](std::int64_t q_position, std::int64_t k_position) {
    Numbers turned_q = q, turned_k = k;
    RotaryShape shape{
        .columns = 8, .heads = 1, .rotated = 8, .sequence_rows = 1, .first_position = q_position};
    rotate<double>(turned_q, shape, Turn::kForward);
    shape.first_position = k_position;
    rotate<double>(turned_k, shape, Turn::kForward);
    return dot(turned_q, turned_k);
  };
  CHECK(score(9, 4) == Approx(score(105, 100)));
  CHECK(score(9, 4) != Approx(score(9, 5)));
}

}  // namespace moebius
