// From moments to figures.
#include <catch2/catch.hpp>

#include "workloads/serving/figures.h"

namespace moebius {
namespace {

Time ms(std::int64_t count) {
  return {count * 1'000'000};
}

}  // namespace

TEST_CASE("percentiles lie between the nearest values") {
  const Spread spread = spread_of({4, 1, 3, 2, 5});  // ranks 0..4: p50 at 2, p90 at 3.6, p95 at 3.8
  CHECK(spread.mean == Approx(3));
  CHECK(spread.p50 == Approx(3));
  CHECK(spread.p90 == Approx(4.6));
  CHECK(spread.p95 == Approx(4.8));
  CHECK(spread_of({}).mean == 0);
  CHECK(spread_of({7}).p99 == 7);
}

// One: tokens at 10, 20, 40 ms: TTFT 10, TPOT (40 - 10) / 2 = 15, gaps 10 and 20. The other: one token at 50
// ms.
TEST_CASE("latencies and rates of two requests") {
  const std::vector<RequestTimes> requests{{100, 3, {ms(10), ms(20), ms(40)}}, {60, 1, {ms(50)}}};
  const ServingFigures figures = serving_figures(requests, {.ttft = ms(20), .tpot = ms(20)});
  CHECK(figures.completed == 2);
  CHECK(figures.ttft.mean == Approx(0.030));
  CHECK(figures.tpot.mean == Approx(0.015));
  CHECK(figures.itl.mean == Approx(0.015));
  CHECK(figures.itl.p50 == Approx(0.015));
  CHECK(figures.e2e.mean == Approx(0.045));
  CHECK(figures.output_tokens_per_s == Approx(4 / 0.050));
  CHECK(figures.input_tokens_per_s == Approx(160 / 0.050));
  CHECK(figures.slo_attainment == Approx(0.5));  // the second came after 20 ms
  CHECK(figures.goodput_rps == Approx(1 / 0.050));
}

TEST_CASE("rates are over the time since the first arrival") {
  const ServingFigures figures =
      serving_figures({{10, 2, {ms(1015), ms(1020)}, ms(1010)}, {10, 1, {ms(1030)}, ms(1015)}}, {});
  CHECK(figures.output_tokens_per_s == Approx(3 / 0.020));
}

TEST_CASE("a request that lacks tokens is submitted and not completed") {
  const ServingFigures figures = serving_figures({{10, 2, {ms(5)}}}, {});
  CHECK(figures.submitted == 1);
  CHECK(figures.completed == 0);
}

}  // namespace moebius
