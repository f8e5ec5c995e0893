#include "sim/event_queue.h"
#include "hw/error.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/catch.h"

using namespace moebius;

// 2^63 ns are 9.22e9 s: 9.2e9 s after 0.02e9 s is still in time, after 0.03e9 s it is not.
TEST_CASE("what would end after 292 years of simulated time is refused in one sentence") {
  CHECK(later(time_from_seconds(2e7), 9.2e9).ns == 9'220'000'000'000'000'000);
  CHECK_THROWS_WITH(later(time_from_seconds(3e7), 9.2e9),
                    "what begins at 347.2 d takes 9.2e+09 s more, but simulated time ends after 292 years");
  CHECK_THROWS_AS(later({0}, std::numeric_limits<double>::infinity()), Error);
}

// The short way from seconds to a time is that of time_from_seconds: whole numbers of nanoseconds, what
// differs from them by less and by more than the tolerance of 1e-6 ns, halves, and anything in between, on
// both sides of the 4.29 s where the long way begins.
TEST_CASE("a later time is rounded as every duration is") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> magnitude(-3, 10.5), part(0, 1);
  const Time now{123'456'789'012};
  const auto differs = [&](double ns) { return later(now, ns * 1e-9) != now + time_from_seconds(ns * 1e-9); };
  int wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double ns = std::pow(10, magnitude(random)), whole = std::floor(ns);
    for (const double beside : {0.0, 0.5, 0.9e-6, 1.1e-6, -0.9e-6, -1.1e-6, part(random)})
      wrong += whole + beside >= 0 && differs(whole + beside);
  }
  CHECK(wrong == 0);
  CHECK(later(now, 0) == now);
}

// Of several events of one time the smallest id comes first, whatever the order in which they were pushed.
TEST_CASE("events come by time and then by id") {
  EventQueue events;
  for (const Event event : {Event{{20}, 1, 0, 0}, {{10}, 9, 1, 0}, {{10}, 3, 2, 0}, {{10}, 5, 3, 7}})
    events.push(event);
  std::vector<int> slots;
  const auto is_current = [](const Event& event) { return event.version == 0; };
  while (events.next(is_current) < kForever) {
    slots.push_back(events.top().slot);
    events.pop();
  }
  CHECK(slots == std::vector<int>{2, 1, 0});
}
