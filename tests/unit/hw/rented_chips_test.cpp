// Chips and nodes that clouds rent: peaks as data sheets state them, what cards of the same die are cut by,
// links that no switch joins, and NICs that a node brings itself.
#include <string>
#include <utility>
#include <vector>

#include "hw/cluster.h"
#include "tests/catch.h"
#include "tests/unit/hw/sentence_of.h"
#include "tests/unit/hw/shipped_catalog.h"

using namespace moebius;

namespace {

Accelerator chip_of(const std::string& name) {
  return catalog().accelerator(name);
}

FabricPool part_of(const std::string& chip, const std::string& node, const std::string& fabric = "clos") {
  return part_of_fabric({"all", chip_of(chip), catalog().node(node), 2}, catalog().fabric(fabric));
}

// Operations a cycle of one core.
double per_cycle(const Accelerator& chip, DType dtype) {
  return chip.peak_of(dtype).value / (chip.cores * chip.clock.value);
}

Node node_from(const std::string& json) {
  const Document document = parse_document("{\"x\": " + json + "}", "s.json");
  return catalog().node(document.root.items[0], {"s.json", "/x", 1});
}

}  // namespace

// Dense TFLOP/s of BF16, FP8 and FP4 (0: not computed in), GB/s of memory and watts, from the vendors' data
// sheets: NVIDIA's A100 (2021), A40, H100 (PCIe and NVL), GH200, L4, the Ada and RTX Blackwell white papers
// (products with FP32 accumulation), AMD's MI325X, MI350X and MI355X (2.3, 4.6 and 9.2 PFLOP/s; 2.5, 5.0 and
// 10.1). Sparse figures are halved.
TEST_CASE("the peaks of rented chips are the dense ones of their data sheets") {
  struct Sheet {
    const char* chip;
    double bf16, fp8, fp4, memory, watts;
  };
  const Sheet sheets[] = {{"a100-pcie-80gb", 312, 0, 0, 1935, 300},
                          {"a100-pcie-40gb", 312, 0, 0, 1555, 250},
                          {"a40", 299.4 / 2, 0, 0, 696, 300},
                          {"h100-pcie", 1513 / 2.0, 3026 / 2.0, 0, 2000, 350},
                          {"h100-nvl", 1671 / 2.0, 3341 / 2.0, 0, 3900, 400},
                          {"gh200-96gb", 1979 / 2.0, 3958 / 2.0, 0, 4000, 900},
                          {"gh200-144gb", 1979 / 2.0, 3958 / 2.0, 0, 4800, 900},
                          {"l4", 242 / 2.0, 485 / 2.0, 0, 300, 72},
                          {"rtx-4090", 165.2, 330.3, 0, 1008, 450},
                          {"rtx-5090", 209.5, 419, 3352 / 2.0, 1792, 575},
                          {"mi325x", 1307.4, 2614.9, 0, 6000, 1000},
                          {"mi350x", 2306.9, 4613.7, 9227.5, 8000, 1000},
                          {"mi355x", 2516.6, 5033.2, 10066.3, 8000, 1400}};
  for (const Sheet& sheet : sheets) {
    INFO(sheet.chip);
    const Accelerator chip = chip_of(sheet.chip);
    const auto tera = [&](DType dtype) { return chip.peak_of(dtype).value / 1e12; };
    CHECK(tera(DType::kBf16) == Approx(sheet.bf16).epsilon(0.003));
    CHECK(tera(DType::kFp16) == Approx(sheet.bf16).epsilon(0.003));
    CHECK(tera(DType::kFp8) == Approx(sheet.fp8).epsilon(0.003));
    CHECK(tera(DType::kFp4) == Approx(sheet.fp4).epsilon(0.003));
    CHECK(chip.memory_rate.value / 1e9 == Approx(sheet.memory).epsilon(0.003));
    CHECK(chip.power.value == sheet.watts);
  }
}

TEST_CASE("a compute unit of CDNA4 does twice the matrix operations of one of CDNA3 a cycle, and FP4 too") {
  const Accelerator mi325x = chip_of("mi325x"), mi355x = chip_of("mi355x");
  CHECK(mi325x.architecture == "cdna3");
  CHECK(mi355x.architecture == "cdna4");
  CHECK(per_cycle(mi325x, DType::kBf16) == Approx(2048).epsilon(0.002));
  CHECK(per_cycle(mi355x, DType::kBf16) == Approx(4096).epsilon(0.002));
  CHECK(per_cycle(mi355x, DType::kFp8) == Approx(8192).epsilon(0.002));
  CHECK(per_cycle(mi355x, DType::kFp4) == Approx(16384).epsilon(0.002));
  CHECK(mi355x.peak_of(DType::kTf32).value == 0);  // gone with CDNA4
}

// 512 operations of an SM and cycle with FP32 sums, for 1,024 of the same SM on a board for servers; integers
// and FP4 are not cut.
TEST_CASE("GeForce cards sum in FP32 at half the rate of the same SM elsewhere") {
  for (const auto& [card, board] : {std::pair{"rtx-4090", "l40s"}, {"rtx-5090", "rtx-pro-6000"}}) {
    INFO(card);
    const Accelerator geforce = chip_of(card), server = chip_of(board);
    CHECK(geforce.architecture == server.architecture);
    for (const DType dtype : {DType::kBf16, DType::kFp16, DType::kFp8})
      CHECK(2 * per_cycle(geforce, dtype) == Approx(per_cycle(server, dtype)).epsilon(0.02));
    CHECK(per_cycle(geforce, DType::kInt8) == Approx(per_cycle(server, DType::kInt8)).epsilon(0.02));
    CHECK(per_cycle(geforce, DType::kFp4) == Approx(per_cycle(server, DType::kFp4)).epsilon(0.02));
    CHECK(geforce.link_rate.value == 0);
  }
}

// No price of a board that is another one, and no other clock than its own.
TEST_CASE("what holds of the chip below alone is not taken over") {
  for (const char* chip : {"a100-pcie-80gb", "h100-pcie", "h100-nvl", "gh200-96gb", "gh200-144gb"}) {
    INFO(chip);
    CHECK(chip_of(chip).price.value == 0);
    CHECK_FALSE(chip_of(chip).is("h100-sxm"));
  }
  CHECK(chip_of("gb200-nvl4").boost.value == 0);
}

// Bytes a second from one device to one peer: Infinity Fabric 76.8 GB/s, NVLink of a bridge 300, of the four
// of an NVL4 300, of two GH200 450; of each what large transfers achieve.
TEST_CASE("direct links carry what each of them can to the one peer that it leads to") {
  const auto pair_rate = [](const char* chip, const char* node) {
    return part_of(chip, node).pair_rate.value / chip_of(chip).link_efficiency;
  };
  CHECK(pair_rate("mi355x", "mi355x-8") == Approx(76.8e9));
  CHECK(pair_rate("mi325x", "mi325x-8") == Approx(64e9));
  CHECK(pair_rate("gb200-nvl4", "gb200-nvl4") == Approx(300e9));
  CHECK(pair_rate("h100-nvl", "nvlink-pair-2") == Approx(300e9));
  CHECK(pair_rate("a40", "nvlink-pair-2") == Approx(56.25e9));
  CHECK(pair_rate("gh200-144gb", "gh200-nvl2") == Approx(450e9));
  CHECK_FALSE(part_of("h100-nvl", "nvlink-pair-2").reduces);  // no switch that could
  const FabricPool cards = part_of("h100-nvl", "pcie-8");
  CHECK(cards.link_rate.value == Approx(55e9 * chip_of("h100-nvl").link_efficiency));
}

// NVLink-C2C of 450 GB/s carries 375; the CPU's memory, read by nothing else, 0.8 of 384.
TEST_CASE("a Grace CPU's memory is what a copy to its Hopper waits for") {
  const FabricPool one = part_of("gh200-96gb", "gh200-1");
  CHECK(one.host_rate.value == 375e9);
  CHECK(one.host_memory_rate.value == Approx(0.8 * 384e9).epsilon(0.001));
  CHECK(part_of("gh200-96gb", "gh200-nvl2").host_memory_rate.value == Approx(2 * 307e9));
}

// Gb/s of line rate that each accelerator has, and devices that share one NIC.
TEST_CASE("a rented node brings its own NICs, as many and as fast as its cloud says") {
  struct Rented {
    const char *node, *chip;
    double gigabits;
    int sharers;
  };
  const Rented rented[] = {{"aws-p4d-8", "a100-sxm-40gb", 50, 2},
                           {"aws-p5-8", "h100-sxm", 400, 1},
                           {"p5e.48xlarge", "h200-sxm", 400, 1},
                           {"aws-p5en-8", "h200-sxm", 400, 1},
                           {"aws-p6-b200-8", "b200-sxm", 400, 1},
                           {"aws-p6-b300-8", "b300-sxm", 800, 1},
                           {"gcp-a3-mega-8", "h100-sxm", 200, 1},
                           {"gcp-a3-ultra-8", "h200-sxm", 400, 1},
                           {"gcp-a4-8", "b200-sxm", 400, 1},
                           {"azure-nd-h100-v5", "h100-sxm", 400, 1},
                           {"azure-nd-mi300x-v5", "mi300x", 400, 1},
                           {"azure-nd-gb200-v6", "gb200-nvl72", 400, 1},
                           {"bm.gpu.a100-v2.8", "a100-sxm", 200, 1},
                           {"bm.gpu.h100.8", "h100-sxm", 400, 1},
                           {"bm.gpu.b200.8", "b200-sxm", 400, 1},
                           {"bm.gpu.mi355x.8", "mi355x", 400, 1}};
  const double achieved = catalog().fabric("clos").transport_efficiency;
  for (const Rented& each : rented) {
    INFO(each.node);
    const FabricPool part = part_of(each.chip, each.node);
    CHECK(part.devices_per_nic == each.sharers);
    const double line = part.nic_rate.value * 8e-9 / achieved / part.devices_per_nic;
    CHECK(line == Approx(each.gigabits));
  }
}

TEST_CASE("the fabric's NIC wins over the node's, and the node's over the accelerator's") {
  Pool pool{"all", chip_of("h100-sxm"), catalog().node("aws-p5-8"), 2};
  FabricSpec spec = catalog().fabric("aws-efa");
  CHECK(nic_line_rate(pool, spec).value == 12.5e9);
  spec.nic = {25e9};
  spec.nic_given = true;
  CHECK(nic_line_rate(pool, spec).value == 25e9);
  pool.node = catalog().node("hgx-8");
  CHECK(nic_line_rate(pool, catalog().fabric("clos")).value == 50e9);
  pool.node = node_from(R"({"base": "aws-p5-8", "nic": "200 Gb/s", "nics": 8})");
  CHECK(nic_line_rate(pool, catalog().fabric("clos")).value == 25e9);
}

TEST_CASE("what a rented chip or node cannot be is said") {
  CHECK(sentence_of([] { node_from(R"({"base": "aws-p5-8", "nic": "5 GB"})"); }) ==
        "s.json:1: /x/nic: expected a byte rate such as \"400 Gb/s\", found \"5 GB\"");
  const auto refused = [](const char* chip, const char* node) {
    return problem_of(Pool{"all", chip_of(chip), catalog().node(node), 1});
  };
  CHECK(refused("h100-nvl", "hgx-8") ==
        "node \"hgx-8\" joins 8 accelerators, but the scale-up link of \"h100-nvl\" joins at most 2");
  CHECK(refused("rtx-4090", "nvlink-pair-2") ==
        "node \"nvlink-pair-2\" joins its accelerators by a full mesh, but \"rtx-4090\" has no scale-up "
        "link: choose a PCIe node such as \"pcie-8\"");
  CHECK(refused("gb200-nvl4", "gb200-nvl36") ==
        "node \"gb200-nvl36\" joins 36 accelerators, but the scale-up link of \"gb200-nvl4\" joins at most "
        "4");
  CHECK(sentence_of([] { chip_of("mi308x"); }) ==
        "\"mi308x\" has no published figures: 80 compute units of CDNA3 and 192 GB of HBM3 are known of it "
        "(public notes, ROCm issue 5070: 2 TB/s are reached), but no peak rates, which its firmware limits; "
        "describe it as {\"base\": NAME, ...changes}");
}
