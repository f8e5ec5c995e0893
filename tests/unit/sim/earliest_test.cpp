#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <tuple>

#include "sim/earliest.h"

using namespace moebius;

TEST_CASE("nothing happens where nobody plays, or to nobody") {
  Earliest none;
  REQUIRE(none.time() == kForever);
  none.add();
  REQUIRE(none.time() == kForever);
}

TEST_CASE("the first is by time, then by id") {
  Earliest all;
  for (int i = 0; i < 3; ++i) all.add();
  all.set(0, {7}, 1);
  all.set(1, {5}, 9);
  all.set(2, {5}, 8);
  REQUIRE(all.first() == 2);
  REQUIRE(all.time() == Time{5});
  all.set(2, kForever, 0);
  REQUIRE(all.first() == 1);
}

TEST_CASE("a tournament gives what a search of all would, whoever comes and goes") {
  std::mt19937 random(11);
  for (const int players : {1, 2, 3, 5, 16, 37}) {
    Earliest all;
    std::vector<std::tuple<std::int64_t, std::uint64_t, std::int32_t>> times;
    for (int i = 0; i < players; ++i) {
      all.add();
      times.emplace_back(kForever.ns, 0, i);
    }
    for (std::uint64_t turn = 0; turn < 500; ++turn) {
      const auto who = static_cast<std::int32_t>(random() % players);
      const Time time = random() % 5 == 0 ? kForever : Time{static_cast<std::int64_t>(random() % 40)};
      const std::uint64_t id = time == kForever ? 0 : turn + 1;
      all.set(who, time, id);
      times[who] = {time.ns, id, who};
      const auto [first_time, first_id, first] = *std::min_element(times.begin(), times.end());
      REQUIRE(all.time() == Time{first_time});
      if (first_time != kForever.ns) REQUIRE(all.first() == first);
    }
  }
}
