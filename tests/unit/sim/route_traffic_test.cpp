// What leaves is what arrives: the traffic of dispatch and combine against the counts of the route.
#include <catch2/catch.hpp>

#include "sim/traffic/collectives.h"
#include "sim/traffic/step_builder.h"
#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

struct RoutedCase {
  Cluster cluster = make_cluster({.nodes = 4, .per_node = 4});
  Layout layout = make_layout({.ranks = 16, .expert = 16});
  Sites sites{cluster, layout};
  GroupSites group = sites.group(layout.classes[0].group(GroupRole::kExpert).ranks);
  Route route{{.seed = 3,
               .popularity = {PopularityKind::kZipf, 1.2, false},
               .ranks = 16,
               .ranks_per_node = 4,
               .experts = 64,
               .active = 6,
               .groups = 4,
               .active_groups = 2,
               .tokens = 100}};
  int node_of(int member) const { return group.members[member].node; }
};

}  // namespace

TEST_CASE("a token enters each other node once") {
  const RoutedCase c;
  const Traffic traffic = route_traffic(c.route, false, 1, c.group, c.sites.fabric());
  for (int source = 0; source < 16; ++source) {
    std::vector<double> into(4, 0);
    for (const Edge& edge : traffic.edges) {
      const bool crosses = c.node_of(edge.from) != c.node_of(edge.to);
      if (crosses && edge.from == source) into[c.node_of(edge.to)] += edge.bytes;
    }
    for (int node = 0; node < 4; ++node) {
      REQUIRE(into[node] == (node == c.node_of(source) ? 0 : c.route.tokens_to_node(source, node)));
    }
  }
}

// A member gets its tokens over the scale-up link, but for its own, which stay, and those for which it is
// itself the door of the node.
TEST_CASE("every member receives the tokens that the route gives it") {
  const RoutedCase c;
  const Traffic traffic = route_traffic(c.route, false, 1, c.group, c.sites.fabric());
  for (int member = 0; member < 16; ++member) {
    double inside = 0;
    for (const Edge& edge : traffic.edges) {
      if (edge.to == member && c.node_of(edge.from) == c.node_of(member)) inside += edge.bytes;
    }
    double stay = c.route.tokens_between(member, member);
    for (int source = 0; source < 16; ++source) {
      const bool same_rail = source % 4 == member % 4 && c.node_of(source) != c.node_of(member);
      if (same_rail) stay += c.route.tokens_between(source, member);
    }
    REQUIRE(inside + stay == c.route.received_tokens(member));
  }
}

TEST_CASE("combine sends back over the edges of dispatch") {
  const RoutedCase c;
  const Traffic out = route_traffic(c.route, false, 2, c.group, c.sites.fabric());
  const Traffic back = route_traffic(c.route, true, 2, c.group, c.sites.fabric());
  REQUIRE(out.edges.size() == back.edges.size());
  for (std::size_t i = 0; i < out.edges.size(); ++i) {
    REQUIRE(out.edges[i].from == back.edges[i].to);
    REQUIRE(out.edges[i].to == back.edges[i].from);
    REQUIRE(out.edges[i].bytes == back.edges[i].bytes);
  }
}

// In flow classes, bytes times flows over all sending wires equal those over all receiving wires of the same
// kind.
TEST_CASE("what enters a wire of one end leaves one of the other") {
  RoutedCase c;
  WireTable table(c.cluster);
  FlowPaths paths(c.cluster, 0);
  StepBuilder builder(c.sites, table, paths, false);
  const Step step = builder.build(route_traffic(c.route, false, 7168, c.group, c.sites.fabric()), c.group);
  double out = 0, in = 0, nic_out = 0, nic_in = 0;
  for (const FlowClass& flow : step.flows) {
    for (const Link& link : flow.links) {
      for (int device = 0; device < 16; ++device) {
        const double bytes = flow.bytes * link.weight;
        if (link.wire == table.wire({WireKind::kScaleUpOut, device})) out += bytes;
        if (link.wire == table.wire({WireKind::kScaleUpIn, device})) in += bytes;
        if (link.wire == table.wire({WireKind::kNicOut, device})) nic_out += bytes;
        if (link.wire == table.wire({WireKind::kNicIn, device})) nic_in += bytes;
      }
    }
  }
  REQUIRE(out > 0);
  REQUIRE(nic_out > 0);
  REQUIRE(out == Approx(in));
  REQUIRE(nic_out == Approx(nic_in));
}

// Ranks 0 to 8 on one node, 9 to 11 on the other: each of the three takes in what three of the nine send.
TEST_CASE("a node with fewer members takes in what comes over all of them") {
  const Cluster cluster = make_cluster({.nodes = 2, .per_node = 9});
  const Layout layout = make_layout({.ranks = 12, .expert = 12});
  const Sites sites(cluster, layout);
  const GroupSites group = sites.group(layout.classes[0].group(GroupRole::kExpert).ranks);
  const Route route({.seed = 3,
                     .popularity = {},
                     .ranks = 12,
                     .ranks_per_node = 9,
                     .experts = 24,
                     .active = 4,
                     .groups = 1,
                     .active_groups = 1,
                     .tokens = 100});
  std::vector<double> into(12, 0), sent(12, 0);
  for (const Edge& edge : route_traffic(route, false, 1, group, sites.fabric()).edges)
    if ((edge.from < 9) != (edge.to < 9)) into[edge.to] += edge.bytes, sent[edge.from] += edge.bytes;
  for (int member = 9; member < 12; ++member) {
    double expected = 0;
    for (int source = member - 9; source < 9; source += 3) expected += route.tokens_to_node(source, 1);
    CHECK(into[member] == expected);
    CHECK(sent[member] == route.tokens_to_node(member, 0));
  }
}
