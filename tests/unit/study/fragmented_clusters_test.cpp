// Random clusters that others have taken a part of: what is left is a part, and not in one piece.
#include "workloads/study/placement/fragmented_clusters.h"

#include <algorithm>

#include "workloads/training/rank_placement.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using Devices = std::vector<std::int32_t>;

int nodes_in_part(const Devices& free) {
  int parts = 0;
  for (std::size_t i = 0; i < free.size();) {
    std::size_t end = i;
    while (end < free.size() && free[end] / 8 == free[i] / 8) ++end;
    parts += end - i < 8 ? 1 : 0;
    i = end;
  }
  return parts;
}

TEST_CASE("a fragmented cluster is drawn from its number alone") {
  CHECK(fragmented_cluster(3).scenario == fragmented_cluster(3).scenario);
  CHECK(fragmented_cluster(3).scenario != fragmented_cluster(4).scenario);
}

TEST_CASE("of a fragmented cluster enough is free for the job and less than all") {
  int in_pieces = 0, in_part = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const FragmentedCluster cluster = fragmented_cluster(seed);
    INFO(cluster.name);
    CHECK(static_cast<int>(cluster.free.size()) >= cluster.ranks);
    CHECK(cluster.free.size() <= 8 * 64);
    CHECK(std::is_sorted(cluster.free.begin(), cluster.free.end()));
    CHECK((nodes_in_part(cluster.free) == 0 || !cluster.whole_nodes));
    in_pieces += cluster.free.back() - cluster.free.front() >= static_cast<int>(cluster.free.size()) ? 1 : 0;
    in_part += nodes_in_part(cluster.free) > 0 ? 1 : 0;
  }
  CHECK(in_pieces >= 150);
  CHECK(in_part >= 40);
}

TEST_CASE("runs of devices are written short and read back") {
  const Devices devices{0, 1, 2, 7, 12, 11, 10, 3};
  CHECK(device_ranges(devices) == "0-2, 7, 12-10, 3");
  CHECK(parse_device_ranges("0-2, 7, 12-10, 3", 13) == devices);
  CHECK(parse_device_ranges("0-1", 2) == Devices{0, 1});
}

TEST_CASE("what is no run of devices is refused") {
  for (const char* text : {"", "a", "1-", "-1", "1,,2", "0-2147483648", "3", "0-1, 0-1"})
    CHECK_FALSE(parse_device_ranges(text, 3).has_value());
}

}  // namespace
}  // namespace moebius
