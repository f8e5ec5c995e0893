#include "hw/fabric/fabric.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/fabric/uplinks.h"

namespace moebius {
namespace {

constexpr int kBundles = -1;  // instead of a path: the bundles of all paths
constexpr int kMostSitesKept = 1 << 18;  // of 28 bytes each

bool on_other_boards(const FabricPool& pool, int local, int other) {
  return pool.board > 0 && local / pool.board != other / pool.board;
}

void core_from_uplinks(FabricSpec& spec, int leaves) {
  spec.core_oversubscription = 1.0 * leaves / spec.spine_uplinks;
  for (Fact& fact : spec.facts)
    if (fact.name == "core_oversubscription")
      fact = follows_uplinks(fact.name, spec.core_oversubscription, fact.file);
}

}  // namespace

std::string_view to_string(WireKind kind) {
  constexpr std::string_view kNames[kNumWireKinds] = {
      "scale-up-out",  "scale-up-in", "scale-up-pair", "nic-out",      "nic-in",         "leaf-up",
      "leaf-down",     "pod-up",      "pod-down",      "leaf-up-port", "leaf-down-port", "pod-up-port",
      "pod-down-port", "board-out",   "board-in",      "region-link",  "nic-out-port",   "nic-in-port",
      "host-out",      "host-in",     "host-memory"};
  return kNames[static_cast<int>(kind)];
}

std::string_view to_string(Distance distance) {
  constexpr std::string_view kNames[kNumDistances] = {
      "itself", "one node", "two boards of a node", "one leaf", "a spine", "the core", "two regions"};
  return kNames[static_cast<int>(distance)];
}

Fabric::Fabric(FabricSpec spec, std::vector<FabricPool> pools)
    : spec_(std::move(spec)), pools_(std::move(pools)) {
  if (const std::string sentence = problem(spec_, pools_); !sentence.empty()) throw input_error(sentence);
  layout_ = lay_out(spec_, pools_);
  spec_.tiers = layout_.tiers;
  leaf_uplinks_ = static_cast<int>(
      spec_.nic_ports * count_of_uplinks(spec_.leaf_uplinks, spec_.leaf_ports, spec_.oversubscription));
  const int leaves = layout_.pod_groups * std::max(1, layout_.columns / spec_.planes);
  if (spec_.core_by_uplinks && spec_.spine_uplinks > 0) core_from_uplinks(spec_, leaves);
  spine_uplinks_ =
      static_cast<int>(count_of_uplinks(spec_.spine_uplinks, leaves, spec_.core_oversubscription));
  first_spine_ = count_spines();
  for (const FabricPool& pool : pools_)
    if (pool.pair_rate.value > 0) mesh_stride_ = std::max(mesh_stride_, pool.devices_per_node);
  if (layout_.devices > kMostSitesKept) return;
  sites_.reserve(layout_.devices);
  for (int device = 0; device < layout_.devices; ++device) sites_.push_back(locate(device));
}

Fabric::Site Fabric::site_of(int device) const {
  CHECK(device >= 0 && device < layout_.devices, fmt::format("device={} of {}", device, layout_.devices));
  return sites_.empty() ? locate(device) : sites_[device];
}

Fabric::Site Fabric::locate(int device) const {
  int pool = static_cast<int>(pools_.size()) - 1;
  while (layout_.pools[pool].first_device > device) --pool;
  const FabricLayout::PoolPlace& place = layout_.pools[pool];
  const FabricPool& nodes = pools_[pool];
  const int node = (device - place.first_device) / nodes.devices_per_node;
  const int local = (device - place.first_device) % nodes.devices_per_node;
  const int nic = local / nodes.devices_per_nic;
  const int leaf_of_node = nic / layout_.columns * place.leaves_per_node / place.ports;
  const int leaves_before = (place.offset + node) / place.nodes_per_leaf * place.leaves_per_node;
  return {.device = device,
          .pool = pool,
          .node = place.first_node + node,
          .local = local,
          .column = nic % layout_.columns,
          .group = place.first_group + leaves_before + leaf_of_node,
          .region = nodes.region};
}

int Fabric::node_of(int device) const {
  return site_of(device).node;
}

int Fabric::region_of(int device) const {
  return site_of(device).region;
}

Fabric::Standing Fabric::standing(int device) const {
  const Site site = site_of(device);
  return {site.node, nic_of(site), leaf_of(site), pod_of(site), site.region, site.pool, site.local};
}

// The device of the site's node on `column`: the preferred one, or the first; -1 when the node has none
// there.
int Fabric::mate_of(const Site& site, int column, int preferred_local) const {
  const FabricPool& pool = pools_[site.pool];
  const auto on_column = [&](int local) {
    return local < pool.devices_per_node && local / pool.devices_per_nic % layout_.columns == column;
  };
  const int first = column * pool.devices_per_nic;
  if (on_column(preferred_local)) return site.device - site.local + preferred_local;
  return on_column(first) ? site.device - site.local + first : -1;
}

// See the head of fabric.h for the rule. One of the two nodes always has a device on the other's column: a
// node with fewer NICs than columns uses the first ones, and a node that uses the later ones uses the first
// ones too.
Fabric::Crossing Fabric::crossing(const Site& from, const Site& to, RailChange change) const {
  if (from.column == to.column) return {from, to};
  // The host reaches all NICs of its node.
  const bool may_climb = from.column % spec_.planes == to.column % spec_.planes && !over_host(from, to);
  // A fabric of one tier has no spine to change rail at.
  const bool rather_climbs = may_climb && change == RailChange::kAtSpine && layout_.tiers > 1;
  if ((pools_[from.pool].forwards && !rather_climbs) || !may_climb) {
    const int mate = mate_of(from, to.column, to.local);
    if (mate >= 0) return {site_of(mate), to};
  }
  if ((pools_[to.pool].forwards && !rather_climbs) || !may_climb) {
    const int mate = mate_of(to, from.column, from.local);
    CHECK(mate >= 0 || may_climb, fmt::format("from={} to={}", from.device, to.device));
    if (mate >= 0) return {from, site_of(mate)};
  }
  return {from, to};
}

Distance Fabric::network_distance(const Crossing& crossing) const {
  const auto& [sender, receiver] = crossing;
  if (sender.region != receiver.region) return Distance::kRegion;
  if (leaf_of(sender) == leaf_of(receiver)) return Distance::kLeaf;
  return pod_of(sender) == pod_of(receiver) ? Distance::kSpine : Distance::kCore;
}

Distance Fabric::distance(int from, int to, RailChange change) const {
  if (from == to) return Distance::kSelf;
  const Site a = site_of(from), b = site_of(to);
  if (a.node != b.node) return network_distance(crossing(a, b, change));
  return on_other_boards(pools_[a.pool], a.local, b.local) ? Distance::kBoards : Distance::kScaleUp;
}

// Switches on the way: 1 within a leaf, then up and down one more each tier; between regions up to the top,
// over a border switch on each side, and down.
int Fabric::hops(Distance distance) const {
  switch (distance) {
    case Distance::kSelf:
    case Distance::kScaleUp:
    case Distance::kBoards:
      return 0;
    case Distance::kLeaf:
      return 1;
    case Distance::kSpine:
      return 3;
    case Distance::kCore:
      return 5;
    case Distance::kRegion:
      return 2 * layout_.tiers + 2;
  }
  return 0;
}

int Fabric::switches(int from, int to) const {
  return hops(distance(from, to));
}

std::pair<int, int> Fabric::over_nics(int from, int to) const {
  const Crossing way = crossing(site_of(from), site_of(to), RailChange::kInNode);
  return {nic_of(way.sender), nic_of(way.receiver)};
}

Time Fabric::scale_up_latency(const Site& from, const Site& to) const {
  const FabricPool& pool = pools_[from.pool];
  if (from.device == to.device) return {};
  return on_other_boards(pool, from.local, to.local) ? pool.link_latency + pool.board_latency
                                                     : pool.link_latency;
}

Time Fabric::latency(int from, int to, RailChange change) const {
  return propagation(from, to, change) + forwarding(from, to, {spec_.transport.packet, 0, change});
}

// A switch sends on what it has received whole: once more the packet's time at each, and `besides`.
Time Fabric::forwarding(int from, int to, const Stored& stored) const {
  if (spec_.transport.ideal || from == to) return {};
  const Site a = site_of(from), b = site_of(to);
  if (a.node == b.node) return {};
  const ByteRate line = pools_[a.pool].nic_rate / spec_.transport_efficiency / spec_.nic_ports;
  const int times = hops(network_distance(crossing(a, b, stored.change))) + stored.besides;
  return time_from_seconds(times * stored.bytes / line.value);
}

Time Fabric::acknowledgement(int from, int to) const {
  if (spec_.transport.ideal || from == to) return {};
  return propagation(to, from) + forwarding(to, from, {spec_.transport.header, 1, RailChange::kInNode});
}

Time Fabric::propagation(int from, int to, RailChange change) const {
  if (from == to) return {};
  const Site a = site_of(from), b = site_of(to);
  if (a.node == b.node) return scale_up_latency(a, b);
  const Crossing way = crossing(a, b, change);
  const Distance reach = network_distance(way);
  Time time = spec_.host_latency + spec_.hop_latency * hops(reach);
  if (reach == Distance::kRegion)
    time += time_from_seconds(spec_.region_distance.value * kFibreSecondsPerMetre);
  if (over_host(a, b)) return time + pools_[a.pool].copy_latency + pools_[b.pool].copy_latency;
  return time + scale_up_latency(a, way.sender) + scale_up_latency(way.receiver, b);
}

void Fabric::add_scale_up(const Site& from, const Site& to, std::vector<WireId>& wires) const {
  if (from.device == to.device) return;
  if (pools_[from.pool].pair_rate.value > 0) {
    wires.push_back({WireKind::kScaleUpPair, from.device * mesh_stride_ + to.local});
    return;
  }
  const bool over_boards = on_other_boards(pools_[from.pool], from.local, to.local);
  wires.push_back({WireKind::kScaleUpOut, from.device});
  if (over_boards) wires.push_back({WireKind::kBoardOut, from.device});
  if (over_boards) wires.push_back({WireKind::kBoardIn, to.device});
  wires.push_back({WireKind::kScaleUpIn, to.device});
}

void Fabric::route(int from, int to, std::vector<WireId>& wires, RailChange change) const {
  if (from != to) route_between({site_of(from), site_of(to)}, change, kBundles, wires);
}

void Fabric::route_by_ports(int from, int to, int path, std::vector<WireId>& wires, RailChange change) const {
  if (from != to) route_between({site_of(from), site_of(to)}, change, path, wires);
}

WireId Fabric::own_wire(WireKind kind, int device) const {
  const bool nic = kind == WireKind::kNicOut || kind == WireKind::kNicIn;
  return {kind, nic ? nic_of(site_of(device)) : device};
}

bool Fabric::through_pods(Distance distance) const {
  return distance == Distance::kCore || (distance == Distance::kRegion && layout_.tiers == 3);
}

int Fabric::num_paths(int from, int to, RailChange change) const {
  const Distance reach = distance(from, to, change);
  if (through_pods(reach)) return leaf_uplinks_ * spine_uplinks_;
  if (reach <= Distance::kBoards) return 1;
  const bool by_spine = reach == Distance::kSpine || (reach == Distance::kRegion && layout_.tiers == 2);
  return by_spine ? leaf_uplinks_ : spec_.nic_ports;
}

void Fabric::route_between(const Crossing& ends, RailChange change, int path,
                           std::vector<WireId>& wires) const {
  const auto& [a, b] = ends;
  if (a.node == b.node) return add_scale_up(a, b, wires);
  const Crossing way = crossing(a, b, change);
  const int out = nic_of(way.sender), in = nic_of(way.receiver), ports = spec_.nic_ports;
  const bool host = over_host(a, b);
  if (host) {
    add_host(a, WireKind::kHostOut, wires);
  } else {
    add_scale_up(a, way.sender, wires);
  }
  if (path == kBundles || ports == 1) {
    wires.push_back({WireKind::kNicOut, out});
    add_switches(way, path, wires);
    wires.push_back({WireKind::kNicIn, in});
  } else {
    wires.push_back({WireKind::kNicOutPort, out * ports + path % ports});
    add_switches(way, path, wires);
    wires.push_back({WireKind::kNicInPort, in * ports + path % ports});
  }
  if (host) return add_host(b, WireKind::kHostIn, wires);
  add_scale_up(way.receiver, b, wires);
}

WireId Fabric::region_link(const Site& from, const Site& to) const {
  return {WireKind::kRegionLink, from.region * layout_.regions + to.region};
}

void Fabric::add_switches(const Crossing& way, int path, std::vector<WireId>& wires) const {
  if (path == kBundles) {
    add_bundles(way, wires);
  } else {
    add_ports(way, path, wires);
  }
}

void Fabric::add_bundles(const Crossing& way, std::vector<WireId>& wires) const {
  const auto& [from, to] = way;
  const Distance reach = network_distance(way);
  const bool climbs = reach != Distance::kLeaf && layout_.tiers >= 2;
  if (climbs) wires.push_back({WireKind::kLeafUp, leaf_of(from)});
  if (through_pods(reach)) wires.push_back({WireKind::kPodUp, pod_of(from)});
  if (reach == Distance::kRegion) wires.push_back(region_link(from, to));
  if (through_pods(reach)) wires.push_back({WireKind::kPodDown, pod_of(to)});
  if (climbs) wires.push_back({WireKind::kLeafDown, leaf_of(to)});
}

void Fabric::add_ports(const Crossing& way, int path, std::vector<WireId>& wires) const {
  const auto& [from, to] = way;
  const Distance reach = network_distance(way);
  const bool climbs = reach != Distance::kLeaf && layout_.tiers >= 2;
  const int u = path % leaf_uplinks_, k = path / leaf_uplinks_ % spine_uplinks_;
  const auto leaf_port = [&](const Site& site) { return leaf_of(site) * leaf_uplinks_ + u; };
  const auto pod_port = [&](const Site& site) {
    return (pod_of(site) * leaf_uplinks_ + u) * spine_uplinks_ + k;
  };
  if (climbs) wires.push_back({WireKind::kLeafUpPort, leaf_port(from)});
  if (through_pods(reach)) wires.push_back({WireKind::kPodUpPort, pod_port(from)});
  if (reach == Distance::kRegion) wires.push_back(region_link(from, to));
  if (through_pods(reach)) wires.push_back({WireKind::kPodDownPort, pod_port(to)});
  if (climbs) wires.push_back({WireKind::kLeafDownPort, leaf_port(to)});
}

}  // namespace moebius
