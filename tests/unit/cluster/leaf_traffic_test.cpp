// What crosses the uplinks of a leaf, and how much longer it takes beside others.
#include "workloads/cluster/queue/leaf_traffic.h"

#include <numeric>

#include <catch2/catch.hpp>

namespace moebius {
namespace {

std::vector<double> up(GroupTraffic traffic, const std::vector<int>& leaf_of) {
  return crossing(traffic, leaf_of, 3);
}

LeafSender sender(int run, double load, double busy, int queue = 0) {
  return {.run = run, .load = load, .busy = busy, .exposed = 1, .queue = queue};
}

}  // namespace

TEST_CASE("a ring leaves each leaf at one node however many stand there") {
  const GroupTraffic ring{.pattern = LinkPattern::kRing, .nodes = 8};
  CHECK(up(ring, {0, 0, 0, 0, 1, 1, 1, 1}) == std::vector<double>{1, 1, 0});
  CHECK(up(ring, {0, 0, 1, 1, 1, 1, 2, 2}) == std::vector<double>{1, 1, 1});
  CHECK(up(ring, {0, 1, 0, 1, 0, 1, 0, 1}) == std::vector<double>{4, 4, 0});  // badly placed
  CHECK(up(ring, {1, 1, 1, 1, 1, 1, 1, 1}) == std::vector<double>{0, 0, 0});
}

// Groups of four: whole ones on a leaf send nothing up. Of one that is cut in halves each node sends two of
// its three parts away; of 3 and 1 each of the three sends one of three, the fourth all.
TEST_CASE("an exchange crosses only where its group is cut") {
  const GroupTraffic exchange{.pattern = LinkPattern::kExchange, .nodes = 4};
  CHECK(up(exchange, {0, 0, 0, 0, 1, 1, 1, 1}) == std::vector<double>{0, 0, 0});
  const std::vector<double> halves = up(exchange, {0, 0, 1, 1});
  CHECK(halves[0] == Approx(4.0 / 3));
  CHECK(halves[1] == Approx(4.0 / 3));
  const std::vector<double> uneven = up(exchange, {0, 0, 0, 2});
  CHECK(uneven[0] == Approx(1));
  CHECK(uneven[2] == Approx(1));
}

TEST_CASE("groups a stride apart cross where their members stand on other leaves") {
  const GroupTraffic chain{.pattern = LinkPattern::kChain, .nodes = 2, .stride = 2};
  CHECK(up(chain, {0, 0, 1, 1}) == std::vector<double>{2, 2, 0});
  CHECK(up(chain, {0, 0, 0, 0}) == std::vector<double>{0, 0, 0});
  const GroupTraffic ring{.pattern = LinkPattern::kRing, .nodes = 2, .stride = 2};
  CHECK(up(ring, {0, 1, 0, 1}) == std::vector<double>{0, 0, 0});  // 0 with 2, 1 with 3
}

TEST_CASE("what uplinks carry together takes nobody longer") {
  CHECK(time_beside({sender(0, 4, 1), sender(1, 4, 1)}, 0, 8) == 1);
  CHECK(time_beside({sender(0, 4, 1), sender(0, 8, 1)}, 0, 8) == 1);  // one's own
}

// 8 nodes want 4: half the rate while the other sends. Half of the time it does: 3/4 of the rate.
TEST_CASE("senders of one queue share what there is and a higher one takes its part first") {
  CHECK(time_beside({sender(0, 4, 1), sender(1, 4, 1)}, 0, 4) == Approx(2));
  CHECK(time_beside({sender(0, 4, 1), sender(1, 4, 0.5)}, 0, 4) == Approx(4.0 / 3));
  CHECK(time_beside({sender(0, 4, 1), sender(1, 3, 1, 1)}, 0, 4) == Approx(4));  // one of four is left
  CHECK(time_beside({sender(0, 4, 1, 1), sender(1, 4, 1)}, 0, 4) == 1);          // the other way round
  CHECK(time_beside({sender(0, 4, 1), sender(1, 4, 0.25, 1)}, 0, 4) == Approx(4.0 / 3));
  // Three fit in pairs and not together.
  const std::vector<LeafSender> three{sender(0, 2, 1), sender(1, 2, 1), sender(2, 2, 1)};
  CHECK(time_beside(three, 0, 4) == Approx(1.5));
  // Alone it takes twice as long already: that is in its step.
  CHECK(time_beside({sender(0, 8, 1), sender(1, 8, 1)}, 0, 4) == Approx(2));
}

}  // namespace moebius
