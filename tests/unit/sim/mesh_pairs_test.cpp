// Counting the pairs of a mesh against going through them one by one.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "sim/traffic/mesh_pairs.h"
#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

using Loads = std::map<WireId, double>;

bool is_shared(WireKind kind) {
  return kind == WireKind::kLeafUp || kind == WireKind::kLeafDown || kind == WireKind::kPodUp ||
         kind == WireKind::kPodDown;
}

struct Counted {
  Loads own, shared;
  double largest = 0, mean = 0;
};

Counted one_by_one(const std::vector<int>& devices, const Fabric& fabric, RailChange change) {
  Counted counted;
  std::vector<WireId> wires;
  for (const int from : devices) {
    for (const int to : devices) {
      if (from == to) continue;
      wires.clear();
      fabric.route(from, to, wires, change);
      for (const WireId wire : wires) ++(is_shared(wire.kind) ? counted.shared : counted.own)[wire];
      counted.mean += fabric.latency(from, to, change).seconds();
      counted.largest = std::max(counted.largest, fabric.latency(from, to, change).seconds());
    }
  }
  counted.mean /= static_cast<double>(devices.size() * (devices.size() - 1));
  return counted;
}

void check_counts(const std::vector<int>& devices, const Fabric& fabric, RailChange change) {
  const Counted expected = one_by_one(devices, fabric, change);
  const MeshPairs pairs(devices, fabric, change);
  Counted found;
  pairs.visit_own_wires([&](WireId wire, int, double n) { found.own[wire] += n; });
  pairs.visit_shared_wires([&](WireId wire, int, double n) { found.shared[wire] += n; });
  CHECK(found.own == expected.own);
  CHECK(found.shared == expected.shared);
  CHECK(pairs.largest_latency() == expected.largest);
  CHECK(pairs.mean_latency() == Approx(expected.mean).epsilon(1e-12));
}

void check_counts(const std::vector<int>& devices, const Fabric& fabric) {
  check_counts(devices, fabric, RailChange::kInNode);
  check_counts(devices, fabric, RailChange::kAtSpine);
}

Fabric fabric_of(const World& world, bool rails, int pod_leaves) {
  const Cluster cluster = make_cluster(world);
  FabricSpec spec = cluster.fabric.spec();
  spec.tiers = 3;
  spec.rail_optimised = rails;
  spec.pod_leaves = pod_leaves;
  return Fabric(spec, {part_of_fabric(cluster.pools.front(), spec)});
}

std::vector<int> every(int stride, int count) {
  std::vector<int> devices(count);
  for (int i = 0; i < count; ++i) devices[i] = i * stride;
  return devices;
}

}  // namespace

TEST_CASE("pairs of a mesh are counted as if one by one over rails and without rails and over PCIe") {
  for (const bool rails : {true, false}) {
    for (const ScaleUp scale_up : {ScaleUp::kSwitch, ScaleUp::kFullMesh, ScaleUp::kPcie}) {
      World world{.nodes = 12, .per_node = 4, .scale_up = scale_up, .leaf_ports = rails ? 2 : 8};
      const Fabric fabric = fabric_of(world, rails, 3);
      check_counts(every(1, 48), fabric);
      check_counts(every(1, 30), fabric);  // the last node with two of four
      check_counts(every(4, 12), fabric);  // one rail
      check_counts(every(3, 16), fabric);
      check_counts(every(1, 4), fabric);  // one node
    }
  }
}

TEST_CASE(
    "a mesh of a hundred ranks on thirteen nodes of a fabric without rails is counted as if one by one") {
  check_counts(every(1, 100), fabric_of({.nodes = 13, .leaf_ports = 32}, false, 4));
}
