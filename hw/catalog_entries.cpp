#include "hw/catalog_entries.h"

#include <utility>

#include "hw/fabric/library_settings.h"

namespace moebius {
namespace {

constexpr double kMany = 1 << 20;
constexpr Range kPositive{.low = kAboveZero};
constexpr Range kNotNegative{.low = 0};
constexpr Range kDuration{.low = 0, .high = 1e6};  // seconds
constexpr double kEquator = 4.1e7;                 // metres: once around the Earth
constexpr Range kShare{.low = kAboveZero, .high = 1};

constexpr FactRow quantity(std::string_view key, Dimension dimension, Range range = kPositive) {
  return {key, FactForm::kQuantity, dimension, range, true};
}
constexpr FactRow number(std::string_view key, Range range) {
  return {key, FactForm::kNumber, {}, range, true};
}
constexpr FactRow count(std::string_view key, double least) {
  return {key, FactForm::kCount, {}, {.low = least, .high = kMany}, true};
}
constexpr FactRow flag(std::string_view key) {
  return {key, FactForm::kFlag, {}, {}, true};
}
constexpr FactRow optional(FactRow row) {
  row.required = false;
  return row;
}

// Switches have eight traffic classes (IEEE 802.1Q).
constexpr FactRow queue(std::string_view key) {
  return {key, FactForm::kCount, {}, {.low = 0, .high = 7}, false};
}

template <DType kType>
constexpr FactField<Accelerator> peak(std::string_view key) {
  return {optional(quantity(key, Dimension::kFlopRate)),
          [](Accelerator& a, double v) { a.peak[static_cast<int>(kType)] = {v}; }};
}

using A = Accelerator;
const std::vector<FactField<A>> kAcceleratorTable{
    peak<DType::kFp32>("fp32"),
    peak<DType::kTf32>("tf32"),
    peak<DType::kBf16>("bf16"),
    peak<DType::kFp16>("fp16"),
    peak<DType::kFp8>("fp8"),
    peak<DType::kInt8>("int8"),
    peak<DType::kFp4>("fp4"),
    {quantity("memory", Dimension::kBytes), [](A& a, double v) { a.memory = {v}; }},
    {quantity("memory_rate", Dimension::kByteRate), [](A& a, double v) { a.memory_rate = {v}; }},
    {number("memory_efficiency", kShare), [](A& a, double v) { a.memory_efficiency = v; }},
    {optional(quantity("l2", Dimension::kBytes)), [](A& a, double v) { a.l2 = {v}; }},
    {count("cores", 1), [](A& a, double v) { a.cores = static_cast<int>(v); }},
    {optional(count("general_cores", 0)), [](A& a, double v) { a.general_cores = static_cast<int>(v); }},
    {optional(flag("independent_engines")), [](A& a, double v) { a.independent_engines = v != 0; }},
    {optional(quantity("clock", Dimension::kFrequency)), [](A& a, double v) { a.clock = {v}; }},
    {optional(quantity("boost", Dimension::kFrequency)), [](A& a, double v) { a.boost = {v}; }},
    {quantity("kernel_floor", Dimension::kTime, {.low = kAboveZero, .high = 1}),
     [](A& a, double v) { a.kernel_floor = time_from_seconds(v); }},
    {optional(quantity("link_rate", Dimension::kByteRate)), [](A& a, double v) { a.link_rate = {v}; }},
    {number("link_efficiency", kShare), [](A& a, double v) { a.link_efficiency = v; }},
    {count("link_domain", 1), [](A& a, double v) { a.link_domain = static_cast<int>(v); }},
    {optional(flag("link_reduces")), [](A& a, double v) { a.link_reduces = v != 0; }},
    {optional(quantity("channel_rate", Dimension::kByteRate)), [](A& a, double v) { a.channel_rate = {v}; }},
    {quantity("host_rate", Dimension::kByteRate), [](A& a, double v) { a.host_rate = {v}; }},
    {optional(quantity("nic", Dimension::kByteRate)), [](A& a, double v) { a.nic_rate = {v}; }},
    {quantity("power", Dimension::kPower), [](A& a, double v) { a.power = {v}; }},
    {optional(quantity("price", Dimension::kPrice)), [](A& a, double v) { a.price = {v}; }},
};

const std::vector<FactField<Node>> kNodeTable{
    {count("accelerators", 1), [](Node& n, double v) { n.accelerators = static_cast<int>(v); }},
    {count("nics", 0), [](Node& n, double v) { n.nics = static_cast<int>(v); }},
    {optional(quantity("nic", Dimension::kByteRate)), [](Node& n, double v) { n.nic_rate = {v}; }},
    {count("rails", 1), [](Node& n, double v) { n.rails = static_cast<int>(v); }},
    {quantity("host_memory", Dimension::kBytes), [](Node& n, double v) { n.host_memory = {v}; }},
    {quantity("host_memory_rate", Dimension::kByteRate), [](Node& n, double v) { n.host_memory_rate = {v}; }},
    {quantity("scale_up_latency", Dimension::kTime, kDuration),
     [](Node& n, double v) { n.scale_up_latency = time_from_seconds(v); }},
    {optional(count("board", 1)), [](Node& n, double v) { n.board = static_cast<int>(v); }},
    {optional(quantity("board_latency", Dimension::kTime, kDuration)),
     [](Node& n, double v) { n.board_latency = time_from_seconds(v); }},
    {optional(number("board_efficiency", kShare)), [](Node& n, double v) { n.board_efficiency = v; }},
    {quantity("overhead_power", Dimension::kPower, kNotNegative),
     [](Node& n, double v) { n.overhead_power = {v}; }},
};

using F = FabricSpec;
const std::vector<FactField<F>> kFabricTable{
    {count("planes", 1), [](F& f, double v) { f.planes = static_cast<int>(v); }},
    {{"tiers", FactForm::kTiers, {}, {.low = kAutomaticTiers, .high = 3}, true},
     [](F& f, double v) { f.tiers = static_cast<int>(v); }},
    {flag("rail_optimised"), [](F& f, double v) { f.rail_optimised = v != 0; }},
    {optional(count("rails", 1)), [](F& f, double v) { f.rails = static_cast<int>(v); }},
    {optional(quantity("nic", Dimension::kByteRate)),
     [](F& f, double v) { f.nic = {v}, f.nic_given = true; }},
    {optional(count("nic_ports", 1)), [](F& f, double v) { f.nic_ports = static_cast<int>(v); }},
    {optional(quantity("region_distance", Dimension::kLength, {.low = 0, .high = kEquator})),
     [](F& f, double v) { f.region_distance = {v}; }},
    {optional(quantity("region_rate", Dimension::kByteRate)), [](F& f, double v) { f.region_rate = {v}; }},
    {count("leaf_ports", 0), [](F& f, double v) { f.leaf_ports = static_cast<int>(v); }},
    {count("switch_ports", 0), [](F& f, double v) { f.switch_ports = static_cast<int>(v); }},
    {optional(count("pod_leaves", 1)), [](F& f, double v) { f.pod_leaves = static_cast<int>(v); }},
    {optional(count("leaf_uplinks", 1)), [](F& f, double v) { f.leaf_uplinks = static_cast<int>(v); }},
    {optional(count("spine_uplinks", 1)), [](F& f, double v) { f.spine_uplinks = static_cast<int>(v); }},
    {optional(count("queue_pairs", 1)), [](F& f, double v) { f.queue_pairs = static_cast<int>(v); }},
    {queue("expert_queue"), [](F& f, double v) { f.expert_queue = static_cast<int>(v); }},
    {queue("tensor_queue"), [](F& f, double v) { f.tensor_queue = static_cast<int>(v); }},
    {queue("pipeline_queue"), [](F& f, double v) { f.pipeline_queue = static_cast<int>(v); }},
    {queue("data_queue"), [](F& f, double v) { f.data_queue = static_cast<int>(v); }},
    {number("oversubscription", kPositive), [](F& f, double v) { f.oversubscription = v; }},
    {number("core_oversubscription", kPositive), [](F& f, double v) { f.core_oversubscription = v; }},
    {number("transport_efficiency", kShare), [](F& f, double v) { f.transport_efficiency = v; }},
    {quantity("host_latency", Dimension::kTime, kDuration),
     [](F& f, double v) { f.host_latency = time_from_seconds(v); }},
    {quantity("hop_latency", Dimension::kTime, kDuration),
     [](F& f, double v) { f.hop_latency = time_from_seconds(v); }},
    {optional(quantity("message_time", Dimension::kTime, kDuration)),
     [](F& f, double v) { f.message_time = time_from_seconds(v); }},
    {optional(flag("reduces")), [](F& f, double v) { f.reduces = v != 0; }},
};

// Of a transport that says what a packet is: its constants' own values (transport.h) where they are not
// given.
const std::vector<FactField<F>> kTransportTable{
    {optional(quantity("packet", Dimension::kBytes)), [](F& f, double v) { f.transport.packet = v; }},
    {optional(quantity("header", Dimension::kBytes)), [](F& f, double v) { f.transport.header = v; }},
    {optional(count("window", 1)), [](F& f, double v) { f.transport.window = static_cast<int>(v); }},
    {optional(quantity("credit", Dimension::kBytes)), [](F& f, double v) { f.transport.credit = v; }},
    {optional(quantity("pull_spacing", Dimension::kBytes)),
     [](F& f, double v) { f.transport.pull_spacing = v; }},
    {optional(count("queue", 1)), [](F& f, double v) { f.transport.queue = static_cast<int>(v); }},
    {optional(count("entropies", 1)), [](F& f, double v) { f.transport.entropies = static_cast<int>(v); }},
    {optional(count("packets_per_ack", 1)),
     [](F& f, double v) { f.transport.packets_per_ack = static_cast<int>(v); }},
};

void read_transport(Layers& layers, FabricSpec& fabric) {
  fabric.facts.push_back(layers.name("transport", {"ideal", "eqds"}));
  fabric.transport.ideal = fabric.facts.back().text == "ideal";
  if (fabric.transport.ideal) return;
  read_facts(layers, kTransportTable, fabric);
  fabric.transport_efficiency = fabric.transport.efficiency();
}

using S = Storage;
const std::vector<FactField<S>> kStorageTable{
    {quantity("read_rate", Dimension::kByteRate), [](S& s, double v) { s.read_rate = {v}; }},
    {quantity("write_rate", Dimension::kByteRate), [](S& s, double v) { s.write_rate = {v}; }},
    {number("read_iops", kPositive), [](S& s, double v) { s.read_iops = v; }},
    {number("write_iops", kPositive), [](S& s, double v) { s.write_iops = v; }},
    {quantity("read_latency", Dimension::kTime, kDuration),
     [](S& s, double v) { s.read_latency = time_from_seconds(v); }},
    {quantity("write_latency", Dimension::kTime, kDuration),
     [](S& s, double v) { s.write_latency = time_from_seconds(v); }},
    {quantity("capacity", Dimension::kBytes), [](S& s, double v) { s.capacity = {v}; }},
};

ScaleUp scale_up_named(const std::string& name) {
  if (name == "switch") return ScaleUp::kSwitch;
  return name == "full-mesh" ? ScaleUp::kFullMesh : ScaleUp::kPcie;
}

Routing routing_named(const std::string& name) {
  if (name == "spray") return Routing::kSpray;
  if (name == "ecmp") return Routing::kEcmp;
  return name == "adaptive" ? Routing::kAdaptive : Routing::kStatic;
}

}  // namespace

Accelerator read_accelerator(Layers& layers) {
  Accelerator accelerator;
  accelerator.vendor = layers.text("vendor");
  accelerator.architecture = layers.text("architecture");
  read_facts(layers, kAcceleratorTable, accelerator);
  layers.finish();
  return accelerator;
}

Node read_node(Layers& layers) {
  Node node;
  node.facts.push_back(layers.name("scale_up", {"switch", "full-mesh", "pcie"}));
  node.scale_up = scale_up_named(node.facts.back().text);
  read_facts(layers, kNodeTable, node);
  const auto [fact, devices] = layers.names("storage");
  node.storage = devices;
  if (!fact.name.empty()) node.facts.push_back(fact);
  layers.finish();
  return node;
}

FabricSpec read_fabric(Layers& layers) {
  FabricSpec fabric;
  fabric.facts.push_back(layers.name("routing", {"spray", "ecmp", "adaptive", "static"}));
  fabric.routing = routing_named(fabric.facts.back().text);
  read_facts(layers, kFabricTable, fabric);
  for (const FactRow& row : library_rows()) {
    if (Fact fact = layers.fact(row); !fact.name.empty()) fabric.facts.push_back(std::move(fact));
  }
  read_transport(layers, fabric);
  layers.finish();
  return fabric;
}

Storage read_storage(Layers& layers) {
  Storage storage;
  read_facts(layers, kStorageTable, storage);
  layers.finish();
  return storage;
}

}  // namespace moebius
