#include "hw/fabric/fabric.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

// Switches on the way: 1 within a leaf, then up and down one more each tier.
int hops(Distance distance) {
  switch (distance) {
    case Distance::kSelf:
    case Distance::kScaleUp:
      return 0;
    case Distance::kLeaf:
      return 1;
    case Distance::kSpine:
      return 3;
    case Distance::kCore:
      return 5;
  }
  return 0;
}

constexpr int kBundles = -1;  // instead of a path: the bundles of all paths

int uplinks(int given, int downlinks, double oversubscription) {
  if (given > 0) return given;
  return std::max(1, static_cast<int>(std::lround(downlinks / oversubscription)));
}

}  // namespace

std::string_view to_string(WireKind kind) {
  constexpr std::string_view kNames[kNumWireKinds] = {
      "scale-up-out",   "scale-up-in", "scale-up-pair", "nic-out",  "nic-in",
      "leaf-up",        "leaf-down",   "pod-up",        "pod-down", "leaf-up-port",
      "leaf-down-port", "pod-up-port", "pod-down-port"};
  return kNames[static_cast<int>(kind)];
}

Fabric::Fabric(FabricSpec spec, std::vector<FabricPool> pools)
    : spec_(std::move(spec)), pools_(std::move(pools)) {
  if (const std::string sentence = problem(spec_, pools_); !sentence.empty()) throw input_error(sentence);
  layout_ = lay_out(spec_, pools_);
  spec_.tiers = layout_.tiers;
  leaf_uplinks_ = uplinks(spec_.leaf_uplinks, spec_.leaf_ports, spec_.oversubscription);
  const int leaves = layout_.pod_groups * std::max(1, layout_.columns / spec_.planes);
  spine_uplinks_ = uplinks(spec_.spine_uplinks, leaves, spec_.core_oversubscription);
  for (const FabricPool& pool : pools_)
    if (pool.pair_rate.value > 0) mesh_stride_ = std::max(mesh_stride_, pool.devices_per_node);
}

Fabric::Site Fabric::site_of(int device) const {
  CHECK(device >= 0 && device < layout_.devices, fmt::format("device={} of {}", device, layout_.devices));
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
          .group = place.first_group + leaves_before + leaf_of_node};
}

int Fabric::node_of(int device) const {
  return site_of(device).node;
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
  const bool may_climb = from.column % spec_.planes == to.column % spec_.planes;
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
  if (leaf_of(sender) == leaf_of(receiver)) return Distance::kLeaf;
  return pod_of(sender) == pod_of(receiver) ? Distance::kSpine : Distance::kCore;
}

Distance Fabric::distance(int from, int to, RailChange change) const {
  if (from == to) return Distance::kSelf;
  const Site a = site_of(from), b = site_of(to);
  return a.node == b.node ? Distance::kScaleUp : network_distance(crossing(a, b, change));
}

Time Fabric::latency(int from, int to, RailChange change) const {
  if (from == to) return {};
  const Site a = site_of(from), b = site_of(to);
  if (a.node == b.node) return pools_[a.pool].link_latency;
  const Crossing way = crossing(a, b, change);
  Time time = spec_.host_latency + spec_.hop_latency * hops(network_distance(way));
  if (way.sender.device != from) time += pools_[a.pool].link_latency;
  if (way.receiver.device != to) time += pools_[b.pool].link_latency;
  return time;
}

void Fabric::add_scale_up(const Site& from, const Site& to, std::vector<WireId>& wires) const {
  if (from.device == to.device) return;
  if (pools_[from.pool].pair_rate.value > 0) {
    wires.push_back({WireKind::kScaleUpPair, from.device * mesh_stride_ + to.local});
    return;
  }
  wires.push_back({WireKind::kScaleUpOut, from.device});
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

int Fabric::num_paths(int from, int to, RailChange change) const {
  const Distance reach = distance(from, to, change);
  if (reach == Distance::kCore) return leaf_uplinks_ * spine_uplinks_;
  return reach == Distance::kSpine ? leaf_uplinks_ : 1;
}

void Fabric::route_between(const Crossing& ends, RailChange change, int path,
                           std::vector<WireId>& wires) const {
  const auto& [a, b] = ends;
  if (a.node == b.node) return add_scale_up(a, b, wires);
  const Crossing way = crossing(a, b, change);
  add_scale_up(a, way.sender, wires);
  wires.push_back({WireKind::kNicOut, nic_of(way.sender)});
  add_switches(way, path, wires);
  wires.push_back({WireKind::kNicIn, nic_of(way.receiver)});
  add_scale_up(way.receiver, b, wires);
}

void Fabric::add_switches(const Crossing& way, int path, std::vector<WireId>& wires) const {
  const Distance reach = network_distance(way);
  const int from = leaf_of(way.sender), to = leaf_of(way.receiver);
  const int from_pod = pod_of(way.sender), to_pod = pod_of(way.receiver);
  if (reach == Distance::kLeaf) return;
  if (path == kBundles) {
    wires.push_back({WireKind::kLeafUp, from});
    if (reach == Distance::kCore) wires.push_back({WireKind::kPodUp, from_pod});
    if (reach == Distance::kCore) wires.push_back({WireKind::kPodDown, to_pod});
    wires.push_back({WireKind::kLeafDown, to});
    return;
  }
  const int u = path % leaf_uplinks_, k = path / leaf_uplinks_ % spine_uplinks_;
  wires.push_back({WireKind::kLeafUpPort, from * leaf_uplinks_ + u});
  if (reach == Distance::kCore) {
    wires.push_back({WireKind::kPodUpPort, (from_pod * leaf_uplinks_ + u) * spine_uplinks_ + k});
    wires.push_back({WireKind::kPodDownPort, (to_pod * leaf_uplinks_ + u) * spine_uplinks_ + k});
  }
  wires.push_back({WireKind::kLeafDownPort, to * leaf_uplinks_ + u});
}

int Fabric::pool_of_group(int group) const {
  int pool = static_cast<int>(pools_.size()) - 1;
  while (pool > 0 && layout_.pools[pool].first_group > group) --pool;
  return pool;
}

// All ports of a leaf are wired, whether or not a node hangs on each.
ByteRate Fabric::leaf_uplink(int group) const {
  return pools_[pool_of_group(group)].nic_rate * spec_.leaf_ports / spec_.oversubscription;
}

ByteRate Fabric::pod_uplink(int first_group) const {
  const int leaves = layout_.pod_groups * std::max(1, layout_.columns / spec_.planes);
  return leaf_uplink(first_group) * leaves / spec_.core_oversubscription;
}

ByteRate Fabric::capacity(WireId wire) const {
  switch (wire.kind) {
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
      return pools_[site_of(wire.index).pool].link_rate;
    case WireKind::kScaleUpPair:
      return pools_[site_of(wire.index / mesh_stride_).pool].pair_rate;
    case WireKind::kNicOut:
    case WireKind::kNicIn:
      return pools_[site_of(wire.index).pool].nic_rate;
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
      return leaf_uplink(wire.index / layout_.columns);
    case WireKind::kPodUp:
    case WireKind::kPodDown:
      return pod_uplink(wire.index / spec_.planes * layout_.pod_groups);
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:
      return capacity({WireKind::kLeafUp, wire.index / leaf_uplinks_}) / leaf_uplinks_;
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort: {
      const int ports = leaf_uplinks_ * spine_uplinks_;
      return capacity({WireKind::kPodUp, wire.index / ports}) / ports;
    }
  }
  return {};
}

// A leaf's trunk carries at most what the NICs below it send or receive.
bool Fabric::leaves_can_bind() const {
  if (layout_.tiers < 2 || layout_.nodes == 1) return false;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    const auto& place = layout_.pools[i];
    const int of_one_node = (place.ports + place.leaves_per_node - 1) / place.leaves_per_node;
    const int ports = std::min(place.nodes_per_leaf, layout_.nodes) * of_one_node;
    if (pools_[i].nic_rate * ports > leaf_uplink(place.first_group)) return true;
  }
  return false;
}

// A pod's trunk carries at most what its leaves' trunks carry, and what the NICs below send.
bool Fabric::pods_can_bind() const {
  if (layout_.tiers < 3 || layout_.groups <= layout_.pod_groups) return false;
  const int columns = std::max(1, layout_.columns / spec_.planes);
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    const auto& place = layout_.pools[i];
    const double under_pod = 1.0 * layout_.pod_groups * place.nodes_per_leaf / place.leaves_per_node;
    const double nodes = std::min(under_pod, 1.0 * layout_.nodes);
    const ByteRate from_nics = pools_[i].nic_rate * (nodes * place.ports * columns);
    const ByteRate from_leaves = leaf_uplink(place.first_group) * (1.0 * columns * layout_.pod_groups);
    if (std::min(from_nics, from_leaves) > pod_uplink(place.first_group)) return true;
  }
  return false;
}

bool Fabric::can_bind(WireKind kind) const {
  const auto some = [&](auto condition) { return std::any_of(pools_.begin(), pools_.end(), condition); };
  switch (kind) {
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
      return some([](const FabricPool& p) { return p.devices_per_node > 1 && p.pair_rate.value <= 0; });
    case WireKind::kScaleUpPair:
      return some([](const FabricPool& p) { return p.devices_per_node > 1 && p.pair_rate.value > 0; });
    case WireKind::kNicOut:
    case WireKind::kNicIn:
      return layout_.nodes > 1;
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
      return leaves_can_bind();
    case WireKind::kPodUp:
    case WireKind::kPodDown:
      return pods_can_bind();
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:  // even uplinks without oversubscription are full when two flows meet on a
                                   // port
      return layout_.tiers >= 2 && layout_.nodes > 1;
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort:
      return layout_.tiers >= 3 && layout_.groups > layout_.pod_groups;
  }
  return true;
}

}  // namespace moebius
