#include "real/host/host_kernels_delta.h"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/real/finite_difference.h"

namespace moebius {
namespace {

using Numbers = std::vector<double>;

constexpr DeltaRuleShape kShape{.heads = 4, .key_heads = 2, .key_dim = 3, .value_dim = 5};
constexpr int kRows = 7;
constexpr int kState = 4 * 3 * 5;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

struct Ruled {
  Numbers o, state;
};

// The sum that the recurrence stands for (arXiv 2412.06464, equation 10), element by element: what each row
// adds to the state is its error times its key, and it decays from row to row.
Ruled by_definition(const Numbers& qkv, const Numbers& gates, const Numbers& decay) {
  const auto& s = kShape;
  Ruled all{Numbers(kRows * s.heads * s.value_dim), Numbers(kState)};
  for (int head = 0; head < s.heads; ++head) {
    const int key_head = head / 2;
    const auto unit = [&](int row, int first) {
      Numbers x(s.key_dim);
      double squares = 0;
      for (int i = 0; i < s.key_dim; ++i) {
        x[i] = qkv[row * s.columns() + first + i];
        squares += x[i] * x[i];
      }
      for (double& value : x) value /= std::sqrt(squares + kLengthEpsilon);
      return x;
    };
    std::vector<Numbers> keys, added;
    Numbers kept;                                       // logarithm of what is left of the state behind a row
    const auto state_at = [&](int row, int i, int j) {  // before the rows from `added.size()` on
      double sum = 0;
      for (int past = 0; past < static_cast<int>(added.size()); ++past) {
        double left = 0;
        for (int between = past + 1; between <= row; ++between) left += kept[between];
        sum += std::exp(left) * keys[past][i] * added[past][j];
      }
      return sum;
    };
    for (int row = 0; row < kRows; ++row) {
      const double a = gates[row * 8 + 4 + head] + decay[4 + head];
      kept.push_back(-std::exp(decay[head]) * std::log(1 + std::exp(a)));
      const Numbers q = unit(row, key_head * s.key_dim), k = unit(row, (2 + key_head) * s.key_dim);
      Numbers error(s.value_dim);
      for (int j = 0; j < s.value_dim; ++j) {
        error[j] = qkv[row * s.columns() + 12 + head * s.value_dim + j];
        for (int i = 0; i < s.key_dim; ++i) error[j] -= state_at(row, i, j) * k[i];
        error[j] *= sigmoid(gates[row * 8 + head]);
      }
      keys.push_back(k);
      added.push_back(error);
      for (int j = 0; j < s.value_dim; ++j)
        for (int i = 0; i < s.key_dim; ++i)
          all.o[(row * s.heads + head) * s.value_dim + j] += state_at(row, i, j) * q[i] / std::sqrt(3.0);
    }
    for (int i = 0; i < s.key_dim; ++i)
      for (int j = 0; j < s.value_dim; ++j)
        all.state[(head * s.key_dim + i) * s.value_dim + j] = state_at(kRows - 1, i, j);
  }
  return all;
}

}  // namespace

TEST_CASE("the gated delta rule gives the sum that it stands for") {
  const Numbers qkv = some_numbers(kRows * kShape.columns(), 1), gates = some_numbers(kRows * 8, 2),
                decay = some_numbers(8, 3);
  Numbers state(kState, 0.0), o(kRows * 20);
  delta_rule<double>(kShape, {qkv, gates, decay}, state, o);
  const Ruled expected = by_definition(qkv, gates, decay);
  for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == Approx(expected.o[i]).margin(1e-12));
  for (std::size_t i = 0; i < state.size(); ++i) CHECK(state[i] == Approx(expected.state[i]).margin(1e-12));
}

TEST_CASE("the gated delta rule in parts is that of all rows") {
  const Numbers qkv = some_numbers(kRows * kShape.columns(), 1), gates = some_numbers(kRows * 8, 2),
                decay = some_numbers(8, 3);
  Numbers whole(kState, 0.0), parts(kState, 0.0), o(kRows * 20), part(kRows * 20);
  delta_rule<double>(kShape, {qkv, gates, decay}, whole, o);
  const std::span<const double> x(qkv), g(gates);
  int row = 0;
  for (const int count : {3, 1, 3}) {
    delta_rule<double>(
        kShape,
        {x.subspan(row * kShape.columns(), count * kShape.columns()), g.subspan(row * 8, count * 8), decay},
        parts, std::span<double>(part).subspan(row * 20, count * 20));
    row += count;
  }
  CHECK(part == o);
  CHECK(parts == whole);
}

// Width 3: y = silu(w0 x[t-2] + w1 x[t-1] + w2 x[t]), column by column.
TEST_CASE("the convolution weighs a row and those before it, and keeps the last ones") {
  const Numbers x = {1, 10, 2, 20, 3, 30, 4, 40}, weight = {1, 2, 3, 0, 0, -1};
  const auto silu = [](double value) { return value * sigmoid(value); };
  const Numbers expected = {silu(1 * -2 + 2 * -1 + 3 * 1), silu(-10), silu(-1 + 2 * 1 + 3 * 2), silu(-20),
                            silu(1 + 2 * 2 + 3 * 3),       silu(-30), silu(2 + 2 * 3 + 3 * 4),  silu(-40)};
  Numbers before = {-2, 5, -1, 6}, y(8);
  convolve<double>({2, 3}, x, weight, before, y);
  for (int i = 0; i < 8; ++i) CHECK(y[i] == Approx(expected[i]));
  CHECK(before == Numbers{3, 30, 4, 40});
}

TEST_CASE("a convolution over fewer rows than its width keeps some that it had") {
  const Numbers weight = some_numbers(2 * 4, 5), x = some_numbers(2 * 5, 6);
  Numbers whole(6, 0.0), parts(6, 0.0), y(10), part(10);
  convolve<double>({2, 4}, x, weight, whole, y);
  int row = 0;
  for (const int count : {1, 2, 2}) {
    convolve<double>({2, 4}, std::span<const double>(x).subspan(row * 2, count * 2), weight, parts,
                     std::span<double>(part).subspan(row * 2, count * 2));
    row += count;
  }
  CHECK(part == y);
  CHECK(parts == whole);
}

}  // namespace moebius
