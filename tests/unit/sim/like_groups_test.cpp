// The groups that a folded class stands for are those that its ranks have when nothing is folded.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "sim/traffic/like_groups.h"
#include "tests/laws/small_world.h"
#include "workloads/training/plan.h"

using namespace moebius;

namespace {

using Groups = std::set<std::vector<std::int32_t>>;

Groups shifted(const Group& group, const RankClass& of) {
  Groups groups;
  for (const std::int32_t shift : shifts_of(group, of)) {
    std::vector<std::int32_t> ranks = group.ranks;
    for (std::int32_t& rank : ranks) rank += shift;
    groups.insert(ranks);
  }
  return groups;
}

Groups unfolded(const RankClass& of, GroupRole role, int index, const Layout& all) {
  Groups groups;
  for (const std::int32_t rank : of.ranks) {
    const Group& group = all.classes[rank].group(role);
    if (group.my_index == index) groups.insert(group.ranks);
  }
  return groups;
}

}  // namespace

TEST_CASE("shifted groups of a class are the groups of its ranks") {
  TrainingPlan plan;
  plan.tp = 2;
  plan.cp = 2;
  plan.dp = 8;
  plan.pp = 3;
  plan.ep = 8;
  const Layout folded = make_layout(plan);
  plan.fold = false;
  const Layout all = make_layout(plan);
  for (const RankClass& rank_class : folded.classes) {
    for (int role = 0; role < kNumGroupRoles; ++role) {
      const Group& group = rank_class.groups[role];
      if (group.ranks.size() < 2) continue;
      INFO("class of rank " << rank_class.representative() << ", role " << role);
      CHECK(shifted(group, rank_class) ==
            unfolded(rank_class, static_cast<GroupRole>(role), group.my_index, all));
    }
  }
}

// As collectives in groups have them: every second node of eight.
TEST_CASE("groups of runs of neighbours are shifted by runs") {
  RankClass of;
  Group group{.ranks = {}, .my_index = 3};
  for (std::int32_t rank = 0; rank < 64; ++rank) {
    of.ranks.push_back(rank);
    if (rank / 8 % 2 == 0) group.ranks.push_back(rank);
  }
  of.ranks.erase(of.ranks.begin(), of.ranks.begin() + 3);  // its representative is rank 3
  CHECK(shifts_of(group, of) == std::vector<std::int32_t>{0, 8});
  group.ranks.resize(16);  // two nodes of four: the third and the fourth have the other two groups
  CHECK(shifts_of(group, of) == std::vector<std::int32_t>{0, 8, 32, 40});
}

// Sixteen expert groups of one node, two nodes to a leaf whose uplinks are short: none leaves its node.
TEST_CASE("groups inside nodes leave leaves and pods alone") {
  const Cluster cluster = make_cluster({.nodes = 16, .leaf_ports = 2, .oversubscription = 4});
  const Layout layout = make_layout({.ranks = 128, .expert = 8, .fold = true});
  const Sites sites(cluster, layout);
  CHECK(sites.group(layout.classes[0].group(GroupRole::kExpert), layout.classes[0]).shifts.empty());
}

// Expert groups of two nodes on leaves of one node each: eight groups, each with leaves of its own and all
// alike, so one is enough. On leaves of three nodes they overlap, and all of them count.
TEST_CASE("of groups that load wires of their own alike one is counted") {
  const Layout layout = make_layout({.ranks = 128, .expert = 16, .fold = true});
  const auto shifts = [&](int leaf_ports) {
    const Cluster cluster = make_cluster({.nodes = 16, .leaf_ports = leaf_ports, .oversubscription = 2});
    const Sites sites(cluster, layout);
    return sites.group(layout.classes[0].group(GroupRole::kExpert), layout.classes[0]).shifts;
  };
  CHECK(shifts(1) == std::vector<std::int32_t>{0});
  // Leaves hold nodes 0-2, 3-5, ...: groups 1 (nodes 2 and 3), 4 (8 and 9) and 7 (14 and 15) cross, the last
  // one into a leaf that one node fills, not three.
  CHECK(shifts(3) == std::vector<std::int32_t>{16, 112});
}
