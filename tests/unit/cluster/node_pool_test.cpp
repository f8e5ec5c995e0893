// Whose nodes are, and how few of them nobody had.
#include <catch2/catch.hpp>

#include "workloads/cluster/node_pool.h"

namespace moebius {

using namespace literals;

TEST_CASE("nodes that nobody ever had were free to the end") {
  NodePool unused(4);
  unused.finish(10_s);
  CHECK(unused.least_free() == 4);
  NodePool used(4);
  used.give(0, {});
  used.give_back(0, 5_s);
  used.finish(10_s);
  CHECK(used.least_free() == 3);
  CHECK(used.free() == 4);
  CHECK(used.busy() == 5);
}

}  // namespace moebius
