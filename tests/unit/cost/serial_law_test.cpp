// The law of one core of a CPU finds the constants that times were made with.
#include "workloads/cost/serial_law.h"

#include <vector>

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

// 300 ns an op, 2 ns a row, 0.1 ns a byte; no products, no exponentials.
const SerialTerms kStream = {300e-9, 2e-9, 0.1e-9, 0, 0};

std::vector<MeasuredTerms> streams(const SerialTerms& law, double factor_of_first = 1) {
  std::vector<MeasuredTerms> measured;
  for (const double rows : {1.0, 8.0, 64.0, 512.0})
    for (const double width : {8.0, 64.0, 512.0}) {
      const SerialTerms terms = {1, rows, 8 * rows * width, 0, 0};
      measured.push_back({terms, serial_seconds(law, terms)});
    }
  measured.front().seconds *= factor_of_first;
  return measured;
}

TEST_CASE("the law of a stream has the constants that its times were made with") {
  const SerialTerms found = fit_serial_law(streams(kStream));
  for (std::size_t i = 0; i < kSerialTerms; ++i) CHECK(found[i] == Approx(kStream[i]).epsilon(1e-6));
}

TEST_CASE("no constant of the law is negative though the times ask for one") {
  // The smallest op took a tenth of what the others tell: the best constant per op would be below zero.
  const SerialTerms no_start = {0, 2e-9, 0.1e-9, 0, 0};
  for (const double constant : fit_serial_law(streams(no_start, 0.1))) CHECK(constant >= 0);
}

TEST_CASE("a law of five terms needs ten measurements") {
  std::vector<MeasuredTerms> few = streams(kStream);
  few.resize(9);
  CHECK(fit_serial_law(few) == SerialTerms{});
}

}  // namespace
}  // namespace moebius
