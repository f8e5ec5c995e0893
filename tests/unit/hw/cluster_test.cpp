// Pools, accelerators and fabrics put together: what their devices achieve, and what does not fit.
#include "hw/cluster.h"
#include "hw/mixed_pools.h"

#include "hw/error.h"

#include <string>
#include <vector>
#include "tests/catch.h"
#include "tests/unit/hw/shipped_catalog.h"

using namespace moebius;

namespace {

Pool pool_of(const std::string& accelerator, const std::string& node, int nodes,
             const std::string& name = "all") {
  return {name, catalog().accelerator(accelerator), catalog().node(node), nodes};
}

FabricSpec spec_of(const std::string& type) {
  return catalog().fabric(type);
}

std::string refusal(std::vector<Pool> pools, const FabricSpec& spec) {
  try {
    build_cluster(std::move(pools), spec, {"a.json", "/cluster", 3});
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("A pool of H800 gives the fabric what DeepEP measured: 160 GB/s of NVLink, 46 of the NIC") {
  const FabricPool part = part_of_fabric(pool_of("h800-sxm", "hgx-8", 4), spec_of("multi-plane-fat-tree"));
  REQUIRE(part.nodes == 4);
  REQUIRE(part.devices_per_node == 8);
  REQUIRE(part.link_rate.value == Approx(160e9));
  REQUIRE(part.nic_rate.value == Approx(46e9));  // 400 Gb/s x 0.92
  REQUIRE(part.pair_rate.value == 0);
  REQUIRE(part.forwards);
}

TEST_CASE("The fabric's NIC wins over the accelerator's where the scenario states one") {
  FabricSpec spec = spec_of("rail-optimised-clos");
  const Pool a100 = pool_of("a100-sxm", "hgx-8", 1);
  REQUIRE(part_of_fabric(a100, spec).nic_rate.value == Approx(25e9 * 0.92));
  spec.nic = {50e9};
  spec.nic_given = true;
  REQUIRE(part_of_fabric(a100, spec).nic_rate.value == Approx(50e9 * 0.92));
}

TEST_CASE("A full mesh shares the device's links among its peers") {
  const Pool pool = pool_of("ascend-910b2", "ascend-910b-8", 2);
  const FabricPool part = part_of_fabric(pool, spec_of("clos-roce"));
  REQUIRE(part.pair_rate.value == Approx(28e9 * pool.accelerator.link_efficiency));  // 196 / 7
}

TEST_CASE("Half a mesh has the same links between two peers as a whole one") {
  Pool pool = pool_of("ascend-910b2", "ascend-910b-8", 2);
  pool.node.accelerators = pool.node.nics = 4;
  REQUIRE(part_of_fabric(pool, spec_of("clos-roce")).pair_rate.value ==
          Approx(28e9 * pool.accelerator.link_efficiency));
}

TEST_CASE("Accelerators without a link meet over the host bridge and do not forward") {
  const Pool pool = pool_of("rtx-pro-6000", "pcie-8", 2);
  const FabricPool part = part_of_fabric(pool, spec_of("rail-optimised-clos"));
  REQUIRE(part.link_rate == pool.accelerator.host_rate * pool.accelerator.link_efficiency);
  REQUIRE_FALSE(part.forwards);
}

TEST_CASE("Fewer NICs than accelerators are shared, more are bundled") {
  Pool pool = pool_of("h20-sxm", "hgx-8", 2);
  pool.node.nics = 4;
  const FabricPool shared = part_of_fabric(pool, spec_of("rail-optimised-clos"));
  REQUIRE(shared.devices_per_nic == 2);
  REQUIRE(shared.rails == 4);
  REQUIRE(shared.nic_rate.value == Approx(46e9));
  pool.node.nics = 16;
  const FabricPool bundled = part_of_fabric(pool, spec_of("rail-optimised-clos"));
  REQUIRE(bundled.devices_per_nic == 1);
  REQUIRE(bundled.nic_rate.value == Approx(92e9));
  pool.node.nics = 3;
  REQUIRE(problem_of(pool) ==
          "node \"hgx-8\" has 3 NICs for 8 accelerators: expected one number to divide the other");
}

TEST_CASE("Devices find their pool") {
  const Cluster cluster =
      build_cluster({pool_of("h100-sxm", "hgx-8", 2, "prefill"), pool_of("h20-sxm", "hgx-8", 1, "decode")},
                    spec_of("rail-optimised-clos"), {});
  REQUIRE(cluster.fabric.num_devices() == 24);
  REQUIRE(cluster.pool_of(15).name == "prefill");
  REQUIRE(cluster.pool_of(16).name == "decode");
}

TEST_CASE("Every node of the catalog makes a cluster with the accelerator it is for") {
  const std::vector<std::vector<std::string>> rows{
      {"hgx-8", "h100-sxm", "rail-optimised-clos"},
      {"gb200-nvl72", "gb300-nvl72", "rail-optimised-clos"},
      {"gb200-nvl72-400g", "gb200-nvl72", "rail-optimised-clos"},
      {"gb200-nvl36", "gb200-nvl72", "rail-optimised-clos"},
      {"gb200-nvl4", "gb200-nvl4", "clos"},
      {"mi300x-8", "mi300x", "clos-roce"},
      {"mi325x-8", "mi325x", "clos-roce"},
      {"mi350x-8", "mi350x", "clos-roce"},
      {"mi355x-8", "mi355x", "rail-optimised-clos-roce"},
      {"kunlun-8", "kunlun-p800", "baidu-hpn"},
      {"kunlun-32", "kunlun-p800-supernode", "rail-optimised-clos-roce"},
      {"kunlun-64", "kunlun-p800-supernode", "rail-optimised-clos-roce"},
      {"ascend-910b-8", "ascend-910b1", "clos-roce"},
      {"ascend-910a-4", "ascend-910a", "clos-roce"},
      {"cloudmatrix-384", "ascend-910c", "rail-optimised-clos-roce"},
      {"cloudmatrix-384-dies", "ascend-910c-die", "rail-optimised-clos-roce"},
      {"ascend-950-64", "ascend-950dt", "rail-optimised-clos-roce"},
      {"pcie-8", "l40s", "rail-optimised-clos"},
      {"pcie-4", "kunlun-r200", "clos-roce"},
      {"single-1", "arc-b60", "clos"},
      {"nvlink-pair-2", "h100-nvl", "clos"},
      {"gh200-1", "gh200-96gb", "clos"},
      {"gh200-nvl2", "gh200-144gb", "clos"},
      {"gcp-a3-mega-8", "h100-sxm", "gcp-a3-mega"},
      {"gcp-a3-ultra-8", "h200-sxm", "rail-optimised-clos-roce"},
      {"gcp-a4-8", "b200-sxm", "rail-optimised-clos-roce"},
      {"aws-p4d-8", "a100-sxm-40gb", "aws-efa"},
      {"aws-p5-8", "h100-sxm", "aws-efa"},
      {"aws-p5en-8", "h200-sxm", "aws-efa"},
      {"aws-p6-b200-8", "b200-sxm", "aws-efa"},
      {"aws-p6-b300-8", "b300-sxm", "aws-efa"},
      {"azure-nd-h100-v5-8", "h100-sxm", "rail-optimised-clos"},
      {"azure-nd-mi300x-v5-8", "mi300x", "rail-optimised-clos"},
      {"oci-a100-8", "a100-sxm", "clos-roce"},
      {"oci-h100-8", "h100-sxm", "clos-roce"},
      {"oci-h200-8", "h200-sxm", "clos-roce"},
      {"oci-b200-8", "b200-sxm", "clos-roce"},
      {"oci-mi300x-8", "mi300x", "clos-roce"}};
  REQUIRE(rows.size() == catalog().node_ids().size());
  for (const auto& row : rows) {
    INFO(row[0]);
    REQUIRE(refusal({pool_of(row[1], row[0], 1)}, spec_of(row[2])) == "none");
    REQUIRE(refusal({pool_of(row[1], row[0], 2)}, spec_of(row[2])) == "none");
  }
}

TEST_CASE("Every fabric of the catalog joins what it is published to join") {
  // Accelerators: Meta 24,576 and HPN 15,360 a pod (x 8 pods), the multi-plane tree 16,384, AIPod 16,000 in
  // 8,192 a rail, SuperPOD H100 16,384, A100 clusters 3,072 on RoCE and 12,800 of 16,000 ports on InfiniBand,
  // Baidu's 100,000 with a port of a NIC in each plane.
  for (const auto& [type, nodes] : std::vector<std::pair<std::string, int>>{{"meta-roce-24k", 3072},
                                                                            {"alibaba-hpn-7", 15360},
                                                                            {"multi-plane-fat-tree", 2048},
                                                                            {"baidu-aipod", 2000},
                                                                            {"baidu-hpn", 12500},
                                                                            {"rail-only", 32},
                                                                            {"nvidia-superpod-h100", 2048},
                                                                            {"a100-clos-roce", 384},
                                                                            {"a100-rail-clos-roce", 384},
                                                                            {"a100-clos-ib", 1600},
                                                                            {"a100-rail-clos-ib", 1600},
                                                                            {"baidu-hpn-dual-tor", 4096},
                                                                            {"baidu-hpn-port-planes", 12500},
                                                                            {"alibaba-dcn-plus", 1024},
                                                                            {"rail-optimised-clos", 2048}}) {
    INFO(type);
    REQUIRE(refusal({pool_of("h100-sxm", "hgx-8", nodes)}, spec_of(type)) == "none");
  }
}

TEST_CASE("HPN 7 has 60 uplinks of 400 Gb/s on each twin leaf, 15 to 1 at the core") {
  const Cluster cluster = build_cluster({pool_of("h100-sxm", "hgx-8", 3840)}, spec_of("alibaba-hpn-7"), {});
  const Fabric& fabric = cluster.fabric;
  REQUIRE(fabric.leaf_uplinks() == 120);
  REQUIRE(fabric.spine_uplinks() == 8);
  const double port = 50e9 * fabric.spec().transport_efficiency;
  REQUIRE(fabric.capacity({WireKind::kLeafUpPort, 0}).value == Approx(port).epsilon(1e-3));
  REQUIRE(fabric.capacity({WireKind::kPodUpPort, 0}).value == Approx(port).epsilon(1e-3));
  REQUIRE(fabric.capacity({WireKind::kNicOutPort, 0}).value == Approx(port / 2));
  REQUIRE(fabric.num_paths(0, 1920 * 8) == 960);  // the next pod of 15 segments of 128 nodes
}

TEST_CASE("CloudMatrix reads a device of its own node in 1.2 us and of another in 2.2, 3 percent slower") {
  const Cluster cluster =
      build_cluster({pool_of("ascend-910c", "cloudmatrix-384", 1)}, spec_of("single-node"), {});
  REQUIRE(cluster.fabric.latency(0, 7).ns == 1200);
  REQUIRE(cluster.fabric.latency(0, 8).ns == 2200);
  REQUIRE(cluster.fabric.capacity({WireKind::kBoardOut, 0}).value ==
          Approx(0.97 * cluster.fabric.capacity({WireKind::kScaleUpOut, 0}).value));
}

TEST_CASE("What does not fit is said at the place of the cluster") {
  const FabricSpec clos = spec_of("rail-optimised-clos");
  REQUIRE(refusal({pool_of("l40s", "hgx-8", 2)}, clos) ==
          "a.json:3: /cluster: pool \"all\": node \"hgx-8\" joins its accelerators by a switch, but \"l40s\" "
          "has no "
          "scale-up link: choose a PCIe node such as \"pcie-8\"");
  REQUIRE(
      refusal({pool_of("kunlun-p800", "kunlun-64", 2)}, clos) ==
      "a.json:3: /cluster: pool \"all\": node \"kunlun-64\" joins 64 accelerators, but the scale-up link of "
      "\"kunlun-p800\" joins at most 8");
  REQUIRE(refusal({pool_of("h100-sxm", "hgx-8", 0)}, clos) ==
          "a.json:3: /cluster: pool \"all\": 0 nodes: expected at least 1");
  REQUIRE(refusal({pool_of("h100-sxm", "hgx-8", 1), pool_of("h100-sxm", "hgx-8", 1)}, clos) ==
          "a.json:3: /cluster: two pools named \"all\"");
  REQUIRE(refusal({pool_of("h100-sxm", "hgx-8", 2)}, spec_of("single-node")) ==
          "a.json:3: /cluster: a \"single-node\" fabric joins no nodes, but the cluster has 2");
}

// Kinds of nodes decide which ranks may stand for others.
TEST_CASE("Pools whose nodes are joined otherwise, or whose chips are built otherwise, are not alike") {
  const Pool one = pool_of("h100-sxm", "hgx-8", 4);
  CHECK(alike(one, pool_of("h100-sxm", "hgx-8", 2)));
  const auto changed_node = parse_document(R"({"base": "hgx-8", "scale_up": "pcie"})", "node");
  Pool other = one;
  other.node = catalog().node(changed_node.root, {"node", "", 1});
  CHECK_FALSE(alike(one, other));
  other = one;
  other.accelerator.architecture = "ampere";
  CHECK_FALSE(alike(one, other));
}

// 200 Gb/s NICs on some leaves and 400 on others: a pod's trunk is what its leaves' are, whoever comes first.
TEST_CASE("The trunk of a pod with leaves of two rates does not hang on their order") {
  FabricSpec spec = spec_of("clos");
  spec.tiers = 3;
  spec.pod_leaves = 8;
  const Pool slow = pool_of("a100-sxm", "hgx-8", 4, "slow"), fast = pool_of("h100-sxm", "hgx-8", 60, "fast");
  const auto first_pod = [&](std::vector<Pool> pools) {
    return build_cluster(std::move(pools), spec, {"a.json", "/cluster", 3})
        .fabric.capacity({WireKind::kPodUp, 0})
        .value;
  };
  const double slow_first = first_pod({slow, fast}), all_slow = first_pod({pool_of("a100-sxm", "hgx-8", 64)}),
               all_fast = first_pod({pool_of("h100-sxm", "hgx-8", 64)});
  CHECK(slow_first > 1.5 * all_slow);
  CHECK(slow_first < all_fast);
}

TEST_CASE("Ports that no switch has are refused") {
  FabricSpec spec = spec_of("clos");
  spec.leaf_uplinks = 1 << 20;
  CHECK_THAT(refusal({pool_of("h100-sxm", "hgx-8", 64)}, spec),
             Catch::Contains("uplinks of a leaf: expected"));
  spec = spec_of("clos");
  spec.oversubscription = 1e-9;
  CHECK_THAT(refusal({pool_of("h100-sxm", "hgx-8", 64)}, spec),
             Catch::Contains("uplinks of a leaf: expected"));
  spec = spec_of("three-tier-clos");
  spec.pod_leaves = 32;  // 4 nodes a leaf
  CHECK(refusal({pool_of("h100-sxm", "hgx-8", 512)}, spec) == "none");
  spec.pod_leaves = 64;
  CHECK_THAT(refusal({pool_of("h100-sxm", "hgx-8", 512)}, spec),
             Catch::Contains("uplinks to the core, but a spine switch has 64 ports"));
}

TEST_CASE("Uplinks of a spine that are counted say how far the core is oversubscribed") {
  const auto fabric_of = [](const char* json) {
    const FabricSpec spec = catalog().fabric(parse_document(json, "f").root, {"f", "", 1}, {5e10});
    return build_cluster({pool_of("h100-sxm", "hgx-8", 256)}, spec, {"a.json", "/cluster", 3}).fabric;
  };
  const Fabric counted = fabric_of(R"({"type": "three-tier-clos", "tiers": 3, "spine_uplinks": 4})"),
               stated = fabric_of(R"({"type": "three-tier-clos", "tiers": 3})");
  CHECK(counted.spine_uplinks() == 4);
  CHECK(counted.capacity({WireKind::kPodUpPort, 0}).value ==
        Approx(stated.capacity({WireKind::kPodUpPort, 0}).value));
  CHECK(counted.capacity({WireKind::kPodUp, 0}).value < stated.capacity({WireKind::kPodUp, 0}).value);
}
