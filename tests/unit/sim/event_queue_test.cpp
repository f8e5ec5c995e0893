#include "sim/event_queue.h"
#include "hw/error.h"

#include <limits>

#undef CHECK  // of hw/error.h: here it is Catch's
#include <catch2/catch.hpp>

using namespace moebius;

// 2^63 ns are 9.22e9 s: 9.2e9 s after 0.02e9 s is still in time, after 0.03e9 s it is not.
TEST_CASE("what would end after 292 years of simulated time is refused in one sentence") {
  CHECK(later(time_from_seconds(2e7), 9.2e9).ns == 9'220'000'000'000'000'000);
  CHECK_THROWS_WITH(later(time_from_seconds(3e7), 9.2e9),
                    "what begins at 347.2 d takes 9.2e+09 s more, but simulated time ends after 292 years");
  CHECK_THROWS_AS(later({0}, std::numeric_limits<double>::infinity()), Error);
}
