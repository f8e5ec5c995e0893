#include "real/host/gemm.h"

#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/real/finite_difference.h"

namespace moebius {
namespace {

std::vector<double> naive(const MatrixView<double>& a, const MatrixView<double>& b, std::vector<double> c) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.columns; ++j) {
      for (std::int64_t k = 0; k < a.columns; ++k) {
        c[i * b.columns + j] +=
            a.data[i * a.row_stride + k * a.column_stride] * b.data[k * b.row_stride + j * b.column_stride];
      }
    }
  }
  return c;
}

void require_like_naive(const MatrixView<double>& a, const MatrixView<double>& b) {
  const std::vector<double> before = some_numbers(a.rows * b.columns, 3);
  std::vector<double> c = before;
  add_product<double>(a, b, c);
  const std::vector<double> expected = naive(a, b, before);
  for (std::size_t i = 0; i < c.size(); ++i) REQUIRE(c[i] == Approx(expected[i]).margin(1e-11));
}

}  // namespace

TEST_CASE("the blocked product is the plain triple loop for sizes that do not fill a tile or a panel") {
  for (const std::int64_t m : {1, 3, 4, 17}) {
    for (const std::int64_t n : {1, 15, 16, 33, 1030}) {
      for (const std::int64_t k : {1, 7, 256, 300}) {
        const auto a = some_numbers(m * k, 1), b = some_numbers(k * n, 2);
        require_like_naive(row_major<double>(a, m, k), row_major<double>(b, k, n));
      }
    }
  }
}

TEST_CASE("transposed operands are a matter of strides") {
  const std::int64_t m = 9, n = 21, k = 40;
  const auto a = some_numbers(m * k, 1), b = some_numbers(k * n, 2);
  require_like_naive(row_major<double>(a, k, m).transposed(), row_major<double>(b, k, n));
  require_like_naive(row_major<double>(a, m, k), row_major<double>(b, n, k).transposed());
}

TEST_CASE("an empty operand adds nothing") {
  const std::vector<double> nothing;
  std::vector<double> c = {1, 2};
  add_product<double>(row_major<double>(nothing, 1, 0), row_major<double>(nothing, 0, 2), c);
  CHECK(c == std::vector<double>{1, 2});
}

}  // namespace moebius
