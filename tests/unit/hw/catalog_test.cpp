// The catalogs: what they hold, how names and bases resolve, and what their reader refuses.

#include <cmath>
#include <string>
#include <vector>
#include "tests/catch.h"
#include "tests/unit/hw/sentence_of.h"
#include "tests/unit/hw/shipped_catalog.h"

using namespace moebius;
using namespace moebius::literals;

namespace {

// The scenario's words: one value of a file "s.json", read at the pointer "/x".
Accelerator accelerator_from(const std::string& json, const Catalog& from = catalog()) {
  const Document document = parse_document("{\"x\": " + json + "}", "s.json");
  return from.accelerator(document.root.items[0], {"s.json", "/x", 1});
}

FabricSpec fabric_from(const std::string& json) {
  const Document document = parse_document("{\"x\": " + json + "}", "s.json");
  return catalog().fabric(document.root.items[0], {"s.json", "/x", 1}, {25e9});
}

std::string refusal_of(const std::string& json) {
  return sentence_of([&] { accelerator_from(json); });
}

const Fact& fact_of(const std::vector<Fact>& facts, const std::string& name) {
  for (const Fact& fact : facts)
    if (fact.name == name) return fact;
  FAIL("no fact " << name);
  return facts.front();
}

}  // namespace

TEST_CASE("Every entry of every catalog reads, and every fact has a known source") {
  const auto check = [](const std::string& id, const std::vector<Fact>& facts) {
    INFO(id);
    REQUIRE_FALSE(facts.empty());
    for (const Fact& fact : facts) {
      INFO(fact.name);
      REQUIRE_FALSE(catalog().source_text(fact).empty());
      REQUIRE(fact.low <= fact.value);
      REQUIRE(fact.value <= fact.high);
      REQUIRE_FALSE(fact.text.empty());
    }
  };
  for (const std::string& id : catalog().accelerator_ids()) check(id, catalog().accelerator(id).facts);
  for (const std::string& id : catalog().node_ids()) check(id, catalog().node(id).facts);
  for (const std::string& id : catalog().fabric_ids()) check(id, catalog().fabric(id).facts);
  for (const std::string& id : catalog().storage_ids()) check(id, catalog().storage(id).facts);
}

TEST_CASE("Accelerators hang together: what a chip computes, holds and moves is of one order") {
  for (const std::string& id : catalog().accelerator_ids()) {
    INFO(id);
    const Accelerator chip = catalog().accelerator(id);
    REQUIRE(chip.id == id);
    REQUIRE(chip.peak_of(DType::kFp16).value > 0);  // every chip here computes in 16 bits
    const double fp16 = chip.peak_of(DType::kFp16).value;
    if (const double fp8 = chip.peak_of(DType::kFp8).value; fp8 > 0)
      REQUIRE(fp8 == Approx(2 * fp16).epsilon(0.06));
    REQUIRE(chip.memory / chip.memory_rate > 0.01);  // reading it all takes 10 ms to 100 ms
    REQUIRE(chip.memory / chip.memory_rate < 0.1);
    REQUIRE(chip.kernel_floor >= 1_us);
    REQUIRE(chip.kernel_floor <= 20_us);
    REQUIRE((chip.link_rate.value == 0 || chip.link_rate > chip.host_rate || chip.link_domain > 8 ||
             id == "ascend-910a"));
  }
}

TEST_CASE("A chip's peak is its cores times its clock times a power of two") {
  // A matrix unit multiplies tiles whose sides are powers of two, each cycle: 512 FLOP on Ada, 8,192 on an
  // Ascend cube.
  int checked = 0;
  for (const std::string& id : catalog().accelerator_ids()) {
    const Accelerator chip = catalog().accelerator(id);
    if (chip.clock.value == 0) continue;   // not known
    if (id.starts_with("h20-")) continue;  // cut below what its cores could do
    INFO(id);
    const double per_cycle = chip.peak_of(DType::kFp16).value / (chip.cores * chip.clock.value);
    REQUIRE(per_cycle == Approx(std::exp2(std::round(std::log2(per_cycle)))).epsilon(0.015));
    ++checked;
  }
  REQUIRE(checked >= 20);
}

TEST_CASE("The H800 is an H100 with half the links") {
  const Accelerator h800 = catalog().accelerator("h800-sxm");
  REQUIRE(h800.vendor == "NVIDIA");
  REQUIRE(h800.architecture == "hopper");
  REQUIRE(h800.peak_of(DType::kBf16).value == 989e12);
  REQUIRE(h800.peak_of(DType::kFp8).value == 1979e12);
  REQUIRE(h800.memory.value == 81559 * 0x1p20);
  REQUIRE(h800.memory_rate.value == 3.35e12);
  REQUIRE(h800.l2.value == 50 * 1048576.0);
  REQUIRE(h800.cores == 132);
  REQUIRE(h800.link_rate.value == 200e9);
  REQUIRE(h800.link_rate.value * h800.link_efficiency == Approx(160e9));  // DeepEP's practical maximum
  REQUIRE(h800.nic_rate.value == 50e9);
  REQUIRE(h800.power.value == 700);
  REQUIRE(h800.price.value == 2.0);
  REQUIRE(fact_of(h800.facts, "price").source == "OII");
}

TEST_CASE("A fact is inherited whole or not at all") {
  // The link rate of the H800 replaces that of the H100 with its note; the L2 cache comes from the H100 with
  // its source.
  const Accelerator h800 = catalog().accelerator("h800-sxm");
  REQUIRE(fact_of(h800.facts, "link_rate").source == "HPN");
  REQUIRE(fact_of(h800.facts, "l2").source == "STAS");
  REQUIRE(fact_of(catalog().accelerator("h100-sxm").facts, "link_rate").note.empty());
}

TEST_CASE("Uncertain chips carry the range to sweep") {
  const Accelerator p800 = catalog().accelerator("kunlun-p800");
  const Fact& rate = fact_of(p800.facts, "memory_rate");
  REQUIRE(rate.low == 1.6e12);
  REQUIRE(rate.value == 2.0e12);
  REQUIRE(rate.high == 2.4e12);
  REQUIRE(rate.status == "third party");
  REQUIRE(p800.independent_engines);
  REQUIRE(fact_of(catalog().accelerator("ascend-910c").facts, "bf16").high == 800e12);
}

TEST_CASE("Names are compared without case, and spaces and underscores count as hyphens") {
  REQUIRE(catalog().accelerator("H100_SXM").id == "h100-sxm");
  REQUIRE(catalog().accelerator("Kunlun P800").id == "kunlun-p800");
  REQUIRE(catalog().node("DGX H100").id == "hgx-8");
  REQUIRE(catalog().storage("nvme_gen5").id == "nvme-gen5");
  REQUIRE(catalog().fabric("MPFT").type == "multi-plane-fat-tree");
}

TEST_CASE("A scenario changes plain quantities of a catalog entry") {
  const Accelerator changed = accelerator_from(R"({"base": "h100-sxm", "memory": "96 GB", "cores": 114})");
  REQUIRE(changed.id == "h100-sxm");
  REQUIRE(changed.memory.value == 96e9);
  REQUIRE(changed.cores == 114);
  REQUIRE(changed.memory_rate.value == 3.35e12);
  REQUIRE(fact_of(changed.facts, "memory").source == "scenario");
  REQUIRE(fact_of(changed.facts, "memory").status == "given");
  REQUIRE(fact_of(changed.facts, "memory").text == "96 GB");
}

TEST_CASE("Null takes a fact away: a chip without native FP8, or without a link") {
  REQUIRE(accelerator_from(R"({"base": "kunlun-p800", "fp8": null})").peak_of(DType::kFp8).value == 0);
  REQUIRE(accelerator_from(R"({"base": "h100-sxm", "link_rate": null})").link_rate.value == 0);
  REQUIRE(refusal_of(R"({"base": "h100-sxm", "memory": null})") ==
          "s.json:1: /x: expected key \"memory\", found none");
}

TEST_CASE("A fabric is a type with changes, and its NIC is the accelerator's unless it says so") {
  const FabricSpec plain = fabric_from(R"({"type": "multi-plane-fat-tree"})");
  REQUIRE(plain.planes == 8);
  REQUIRE(plain.tiers == kAutomaticTiers);
  REQUIRE_FALSE(plain.rail_optimised);
  REQUIRE(plain.nic.value == 25e9);
  REQUIRE_FALSE(plain.nic_given);
  const FabricSpec changed = fabric_from(
      R"({"type": "rail-optimised-clos", "planes": 2, "nic": "400 Gb/s", "oversubscription": 1.5,
                             "tiers": 3})");
  REQUIRE(changed.planes == 2);
  REQUIRE(changed.tiers == 3);
  REQUIRE(changed.oversubscription == 1.5);
  REQUIRE(changed.nic.value == 50e9);
  REQUIRE(changed.nic_given);
  REQUIRE(fabric_from("\"clos\"").type == "clos");
  REQUIRE(fabric_from(R"({"base": "clos"})").type == "clos");
}

// 60 uplinks of a leaf of HPN 7 are of 400 Gb/s below 128 ports of 200: 1.067; meta's are as fast as its
// ports.
TEST_CASE(
    "uplinks that a description changes keep their rate, and how far the leaf is oversubscribed follows") {
  const auto leaf = [](const std::string& changes) {
    return fabric_from("{" + changes + "}").oversubscription;
  };
  CHECK(leaf(R"("type": "rail-optimised-clos", "leaf_uplinks": 4)") == 8);
  CHECK(leaf(R"("type": "rail-optimised-clos", "leaf_ports": 16, "leaf_uplinks": 16)") == 1);
  CHECK(leaf(R"("type": "rail-optimised-clos", "leaf_uplinks": 8, "oversubscription": 4)") == 4);
  CHECK(leaf(R"("type": "alibaba-hpn-7", "leaf_uplinks": 30)") == Approx(2 * 1.067));
  CHECK(leaf(R"("type": "alibaba-hpn-7")") == 1.067);
  const FabricSpec shown = fabric_from(R"({"type": "rail-optimised-clos", "leaf_uplinks": 4})");
  CHECK(fact_of(shown.facts, "oversubscription").text == "8");
  CHECK(leaf(R"("type": "meta-roce-24k", "leaf_uplinks": 9)") == Approx(2 * 0.8889));
}

TEST_CASE("InfiniBand and RoCE meet the published latencies within a leaf and between leaves") {
  const FabricSpec ib = catalog().fabric("clos"), roce = catalog().fabric("clos-roce");
  REQUIRE(ib.host_latency + ib.hop_latency == 2800_ns);
  REQUIRE(ib.host_latency + ib.hop_latency * 3 == 3700_ns);
  REQUIRE(roce.host_latency + roce.hop_latency == 3600_ns);
  REQUIRE(roce.host_latency + roce.hop_latency * 3 == 5600_ns);
}

TEST_CASE("A node's local devices are named by their catalog ids") {
  const Node node = catalog().node("hgx-8");
  REQUIRE(node.storage == std::vector<std::string>(8, "nvme-gen4"));
  REQUIRE(catalog().node("mi300x-8").scale_up == ScaleUp::kFullMesh);
  REQUIRE(catalog().node("gb200-nvl72").accelerators == 72);
}

TEST_CASE("An unknown name is refused with the nearest known one") {
  REQUIRE(
      refusal_of("\"h100-sxn\"") ==
      "s.json:1: /x: expected the name of an accelerator, found \"h100-sxn\" (did you mean \"h100-sxm\"?)");
  REQUIRE(sentence_of([] { catalog().node("hgx-9"); }) ==
          "expected the name of a node, found \"hgx-9\" (did you mean \"hgx-8\"?)");
  REQUIRE(refusal_of(R"({"base": "b200-sxn"})") ==
          "s.json:1: /x/base: expected the name of an accelerator, found \"b200-sxn\" (did you mean "
          "\"b200-sxm\"?)");
}

TEST_CASE("A chip announced without figures is refused with the reason") {
  REQUIRE(refusal_of("\"Kunlun-M300\"") ==
          "s.json:1: /x: \"Kunlun-M300\" has no published figures: announced for early 2027, training and "
          "inference, no "
          "numbers (KSUM); describe it as {\"base\": NAME, ...changes}");
}

TEST_CASE("A scenario's changes are refused where they stand") {
  REQUIRE(refusal_of("7") ==
          "s.json:1: /x: expected the name of an accelerator or {\"base\": NAME, ...changes}, found 7");
  REQUIRE(refusal_of("{}") ==
          "s.json:1: /x: missing \"base\": expected the name of an accelerator to start from");
  REQUIRE(refusal_of(R"({"base": "h100-sxm", "memry": "96 GB"})") ==
          "s.json:1: /x/memry: unknown key \"memry\" (did you mean \"memory\"?)");
  REQUIRE(refusal_of(R"({"base": "h100-sxm", "memory": 96})") ==
          "s.json:1: /x/memory: expected a size such as \"16 GiB\", found 96");
  REQUIRE(refusal_of(R"({"base": "h100-sxm", "memory_rate": "-1 GB/s"})") ==
          "s.json:1: /x/memory_rate: expected a byte rate such as \"400 Gb/s\", more than 0 B/s, found \"-1 "
          "GB/s\"");
  REQUIRE(refusal_of(R"({"base": "h100-sxm", "link_efficiency": 1.5})") ==
          "s.json:1: /x/link_efficiency: expected a number of more than 0 and at most 1, found 1.5");
  REQUIRE(refusal_of(R"({"base": "h100-sxm", "cores": 0})") ==
          "s.json:1: /x/cores: expected an integer from 1 to 1048576, found 0");
  REQUIRE(refusal_of(R"({"base": "h100-sxm", "independent_engines": 1})") ==
          "s.json:1: /x/independent_engines: expected true or false, found 1");
  REQUIRE(sentence_of([] { fabric_from(R"({"type": "clos", "tiers": "many"})"); }) ==
          "s.json:1: /x/tiers: expected \"auto\" or an integer from 0 to 3, found \"many\"");
}
