// Spare nodes over pools of unlike sizes: as many as were asked for, near each pool's share.
#include <cstdlib>
#include <numeric>

#include "workloads/cluster/queue/card_map.h"

#include "tests/catch.h"

namespace moebius {
namespace {

TEST_CASE("no spare node is lost between pools") {
  CHECK(spares_of_pools({128, 64, 64}, 4) == std::vector<int>{2, 1, 1});
  CHECK(spares_of_pools({400, 250, 250, 200, 100, 50}, 12) == std::vector<int>{4, 2, 2, 2, 1, 1});
  CHECK(spares_of_pools({16, 16, 16}, 1) == std::vector<int>{1, 0, 0});
  CHECK(spares_of_pools({1, 2}, 3) == std::vector<int>{1, 2});
}

TEST_CASE("each pool keeps its share of the spare nodes, rounded up or down") {
  const std::vector<int> nodes{7, 1, 31, 16, 16};
  const int all = std::accumulate(nodes.begin(), nodes.end(), 0);
  for (int spares = 0; spares <= all; ++spares) {
    INFO(spares);
    const std::vector<int> kept = spares_of_pools(nodes, spares);
    REQUIRE(std::accumulate(kept.begin(), kept.end(), 0) == spares);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      REQUIRE(kept[i] <= nodes[i]);
      REQUIRE(std::abs(kept[i] * all - spares * nodes[i]) < all);
    }
  }
}

}  // namespace
}  // namespace moebius
