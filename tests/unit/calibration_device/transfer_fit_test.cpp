#include "workloads/calibration/device/transfer_fit.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

TransferCurve curve_of(std::vector<double> bytes, std::vector<double> seconds) {
  TransferCurve curve;
  curve.bytes = std::move(bytes);
  curve.seconds = std::move(seconds);
  fit_line(curve);
  return curve;
}

TEST_CASE("points on a line give its latency and rate, and no error") {
  const TransferCurve curve = curve_of({1e3, 1e6, 1e9}, {2e-6 + 1e-6, 2e-6 + 1e-3, 2e-6 + 1});
  CHECK(curve.latency == Approx(2e-6));
  CHECK(curve.rate == Approx(1e9));
  CHECK(curve.fit_error < 1e-6);
}

TEST_CASE("a line that would start below zero starts at zero") {
  // Twice the bytes take three times as long.
  const TransferCurve curve = curve_of({1, 2}, {1, 3});
  CHECK(curve.latency == 0);
  // Least squares of x s / y - 1 over (1, 1) and (2, 3): s = (1 + 2/3) / (1 + 4/9) = 15/13.
  CHECK(curve.rate == Approx(13.0 / 15));
  // Errors 15/13 - 1 and 30/39 - 1: of two the larger.
  CHECK(curve.fit_error == Approx(9.0 / 39));
}

TEST_CASE("one point alone is a rate without a latency") {
  const TransferCurve curve = curve_of({10}, {5});
  CHECK(curve.latency == 0);
  CHECK(curve.rate == Approx(2));
}

TEST_CASE("of every size the median of repeated transfers stands, the first one left out") {
  int calls = 0;
  const TransferCurve curve = measure_transfers({"x", {8}, 0}, [&](double bytes) {
    CHECK(bytes == 8);
    return std::vector<double>{100, 1, 3, 2}[static_cast<std::size_t>(calls++)];
  });
  CHECK(calls == 4);
  CHECK(curve.seconds == std::vector<double>{2});
  // Of 1, 2, 3 the elements 0 and 2 are the quartiles: half of their distance over the median.
  CHECK(curve.spread == std::vector<double>{0.5});
}

}  // namespace
}  // namespace moebius
