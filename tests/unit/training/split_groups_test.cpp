#include <catch2/catch.hpp>

#include "tests/laws/small_world.h"
#include "workloads/training/pipeline/columns.h"
#include "workloads/training/pipeline/split_groups.h"
#include "workloads/training/rank_placement.h"

using namespace moebius;

namespace {

// Nodes of 8 devices.
std::vector<std::string> sentences(const TrainingPlan& plan, int nodes) {
  const Cluster cluster = make_cluster({.nodes = nodes});
  return groups_over_domains(cluster, make_layout(plan, column_kinds(plan, cluster.fabric)));
}

TrainingPlan plan_by_tensors(int tp, int dp, int ep) {
  TrainingPlan plan;
  plan.tp = tp;
  plan.dp = dp;
  plan.ep = ep;
  return plan;
}

}  // namespace

TEST_CASE("groups that fill domains, and those that none has room for, are no one's fault") {
  CHECK(sentences(plan_by_tensors(2, 16, 4), 4).empty());
  CHECK(sentences(plan_by_tensors(1, 32, 16), 4).empty());
}

// Of 24 ranks in expert groups of 6, the second and third of four groups stand on two nodes each.
TEST_CASE(
    "groups that fit in a domain and stand over two are named, with the devices that keep them together") {
  const auto found = sentences(plan_by_tensors(1, 24, 6), 4);
  REQUIRE(found.size() == 1);
  CHECK(found.front() ==
        "12 of 24 ranks are in expert groups of 6 that stand over several scale-up domains, though one of 8 "
        "devices has room: /plan/placement/devices \"0-5, 8-13, ...\" would keep them together");
}

TEST_CASE("of groups that fit and are split the largest is named") {
  const auto found = sentences(plan_by_tensors(3, 8, 6), 4);
  REQUIRE(found.size() == 1);
  CHECK(found.front().find("in expert groups of 6") != std::string::npos);
}

// Tensor groups of 6 and expert groups of the same ranks.
TEST_CASE("ranks of two kinds of groups of one size are counted once") {
  const auto found = sentences(plan_by_tensors(6, 4, 6), 4);
  REQUIRE(found.size() == 1);
  CHECK(found.front().find("12 of 24 ranks are in tensor groups of 6") == 0);
}

// Of tensor groups of 4 the ranks 0, 4, 8 and 12 are a context group: no node of 8 has room for 16 ranks.
TEST_CASE("groups whose neighbours between them fill a domain are no one's fault") {
  TrainingPlan plan = plan_by_tensors(4, 2, 1);
  plan.cp = 4;
  CHECK(sentences(plan, 4).empty());
  const Cluster cluster = make_cluster({.nodes = 4});
  CHECK_FALSE(devices_of_whole_groups(cluster, make_layout(plan, column_kinds(plan, cluster.fabric))));
}

// Ranks 0, 2, 4 and 1, 3, 5 share six devices; the blocks that begin at 6 and 12 stand on two nodes each.
TEST_CASE("of groups of every second rank whole blocks are kept together") {
  TrainingPlan plan = plan_by_tensors(2, 4, 1);
  plan.cp = 3;
  const auto found = sentences(plan, 4);
  REQUIRE(found.size() == 1);
  CHECK(found.front() ==
        "12 of 24 ranks are in context groups of 3 that stand over several scale-up domains, though one of 8 "
        "devices has room: /plan/placement/devices \"0-5, 8-13, ...\" would keep them together");
}

// Groups of 6 on nodes of 8: six devices of each node.
TEST_CASE("devices that keep groups together are the first ones that they fill of each domain") {
  const TrainingPlan plan = plan_by_tensors(1, 24, 6);
  const Cluster cluster = make_cluster({.nodes = 4});
  const Layout layout = make_layout(plan, column_kinds(plan, cluster.fabric));
  const auto whole = devices_of_whole_groups(cluster, layout);
  REQUIRE(whole);
  CHECK(std::string(whole->name) == "expert");
  CHECK(device_ranges(whole->devices) == "0-5, 8-13, 16-21, 24-29");
  const TrainingPlan fits = plan_by_tensors(1, 32, 8);
  CHECK_FALSE(devices_of_whole_groups(cluster, make_layout(fits, column_kinds(fits, cluster.fabric))));
}
