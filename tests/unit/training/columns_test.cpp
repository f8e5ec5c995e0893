#include <catch2/catch.hpp>

#include "tests/laws/small_world.h"
#include "workloads/training/pipeline/columns.h"

using namespace moebius;

namespace {

// Nodes of 8 devices, one to a leaf, and a core of a quarter of what the pods could send.
Fabric fabric_of(int nodes, int pod_nodes, double core) {
  const Cluster cluster = make_cluster({.nodes = nodes, .leaf_ports = 1});
  FabricSpec spec = cluster.fabric.spec();
  spec.tiers = 3;
  spec.pod_leaves = pod_nodes;
  spec.core_oversubscription = core;
  return Fabric(spec, {part_of_fabric(cluster.pools.front(), spec)});
}

TrainingPlan plan_of(int pp, int dp, int ep) {
  TrainingPlan plan;
  plan.pp = pp;
  plan.dp = dp;
  plan.ep = ep;
  return plan;
}

using Kinds = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("columns are alike where no shared wire can be a bottleneck") {
  CHECK(column_kinds(plan_of(2, 48, 16), fabric_of(12, 3, 1)).empty());
}

// Three columns of two nodes in each of two stages; each stage fills two pods of three nodes. Columns 0 and 2
// stand in one pod, column 1 in both, at the same places in both stages.
TEST_CASE("columns that cross pods are told from those that do not") {
  CHECK(column_kinds(plan_of(2, 48, 16), fabric_of(12, 3, 4)) == Kinds{0, 1, 0});
}

// A stage fills a pod and a half: its first two of three columns stand in the first pod, and in the next
// stage the first one in the pod that both stages share.
TEST_CASE("columns whose neighbours in the pipeline stand in other pods are told apart") {
  CHECK(column_kinds(plan_of(2, 24, 8), fabric_of(6, 2, 4)) == Kinds{0, 1, 2});
}

// Groups of 6 ranks on nodes of 8 devices: cut nowhere, after 2, after 4; two stages of 12 columns each.
TEST_CASE("columns that the borders of nodes cut elsewhere are told apart") {
  const Fabric fabric = fabric_of(18, 18, 1);
  CHECK(column_kinds(plan_of(2, 72, 6), fabric) == Kinds{0, 1, 2, 0, 0, 1, 2, 0, 0, 1, 2, 0});
  CHECK(column_kinds(plan_of(2, 72, 4), fabric).empty());
}

TEST_CASE("more kinds than allowed are left undivided") {
  CHECK(column_kinds(plan_of(2, 24, 8), fabric_of(6, 2, 4), {}, 2).empty());
}

TEST_CASE("devices at the same places of every domain are like domains of fewer") {
  const Fabric fabric = fabric_of(18, 18, 1);
  CHECK(fills_like_domains({0, 1, 2, 3, 8, 9, 10, 11}, fabric));
  CHECK(fills_like_domains({1, 2, 17, 18, 33, 34}, fabric));
  CHECK(!fills_like_domains({0, 1, 2, 3, 8, 9, 10}, fabric));       // fewer in the second
  CHECK(!fills_like_domains({0, 1, 2, 3, 9, 10, 11, 12}, fabric));  // other NICs there
  CHECK(!fills_like_domains({8, 9, 0, 1}, fabric));
}

// Groups of 6 ranks on 6 of each 8 devices: cut nowhere, where ranks that fill their nodes are.
TEST_CASE("columns are told apart by where their ranks stand") {
  const Fabric fabric = fabric_of(24, 24, 1);
  std::vector<std::int32_t> devices;
  for (int rank = 0; rank < 144; ++rank) devices.push_back(rank / 6 * 8 + rank % 6);
  CHECK(column_kinds(plan_of(2, 72, 6), fabric, devices).empty());
  CHECK(column_kinds(plan_of(2, 72, 4), fabric, devices) ==  // whole, after 2, whole; stages alike
        Kinds{0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0});
}

TEST_CASE("an unfolded plan has no kinds of columns") {
  TrainingPlan plan = plan_of(2, 48, 16);
  plan.fold = false;
  CHECK(column_kinds(plan, fabric_of(12, 3, 4)).empty());
}

TEST_CASE("a folded layout has one class for each stage and kind of column") {
  const Layout layout = make_layout(plan_of(2, 6, 2), Kinds{0, 1, 0});
  REQUIRE(layout.classes.size() == 4);
  CHECK(layout.classes[0].ranks == std::vector<std::int32_t>{0, 1, 4, 5});
  CHECK(layout.classes[3].ranks == std::vector<std::int32_t>{8, 9});
  CHECK(layout.classes[1].group(GroupRole::kExpert).num_classes == 1);
  CHECK(layout.classes[1].group(GroupRole::kData).num_classes == 2);
  CHECK(layout.classes[3].group(GroupRole::kPrevious).ranks == std::vector<std::int32_t>{2, 8});
}
