#include "sim/traffic/flow_paths.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/routing/random_stream.h"

namespace moebius {
namespace {

constexpr Fabric::Gates kNoGates{-1, -1};
constexpr RailChange kNone = RailChange::kAtSpine;  // between gates: inside the nodes it has been made

bool picks_one_path(Routing routing) {
  switch (routing) {
    case Routing::kSpray:
    case Routing::kAdaptive:
      return false;
    case Routing::kEcmp:
    case Routing::kStatic:
      return true;
  }
  return false;
}

std::uint64_t mixed(std::uint64_t key, std::uint64_t with) {
  return RandomStream::finalise(key * RandomStream::kGolden + with + 1);
}

// Nodes are numbered pool by pool, their devices one after the other.
std::vector<int> first_devices(const Cluster& cluster) {
  std::vector<int> first;
  int device = 0;
  for (const Pool& pool : cluster.pools) {
    for (int node = 0; node < pool.nodes; ++node, device += pool.node.accelerators) first.push_back(device);
  }
  first.push_back(device);
  return first;
}

}  // namespace

FlowPaths::FlowPaths(const Cluster& cluster, std::uint64_t seed)
    : fabric_(cluster.fabric),
      health_(cluster.fabric, cluster.damaged),
      damaged_at_(cluster.damaged_at),
      seed_(RandomStream::finalise(seed)),
      by_ports_(cluster.by_ports()),
      single_(by_ports_ && picks_one_path(cluster.fabric.spec().routing)),
      flows_(cluster.fabric.spec().routing == Routing::kEcmp ? cluster.fabric.spec().queue_pairs : 1),
      first_device_of_node_(first_devices(cluster)) {}

void FlowPaths::set_health(const PartHealth& part) {
  health_.set(part);
  damaged_at_ = {};
  whole_.clear();
  shares_.clear();
}

bool FlowPaths::nics_work(Fabric::Gates gates) const {
  return health_.share({WireKind::kNicOut, fabric_.nic_of(gates.sender)}) > 0 &&
         health_.share({WireKind::kNicIn, fabric_.nic_of(gates.receiver)}) > 0;
}

const std::vector<std::int32_t>& FlowPaths::whole_paths(Fabric::Gates gates) {
  const auto [known, is_new] = whole_.try_emplace({gates.sender, gates.receiver});
  std::vector<std::int32_t>& paths = known->second;
  if (!is_new || !nics_work(gates)) return paths;
  const int count = fabric_.num_paths(gates.sender, gates.receiver, kNone);
  for (int path = 0; path < count; ++path) {
    scratch_.clear();
    wires(gates, path, scratch_);
    const bool whole =
        std::all_of(scratch_.begin(), scratch_.end(), [&](WireId wire) { return health_.share(wire) > 0; });
    if (whole) paths.push_back(path);
  }
  return paths;
}

// Of each NIC beside a broken one, or of each of the sender's, the best pair with the other node that a path
// is left between: with the NIC that the other end has anyway, else with the one of equal rail.
std::vector<Fabric::Gates> FlowPaths::gates_around(const Ends& ends, Fabric::Gates usual) {
  const int node[2] = {fabric_.node_of(ends.from), fabric_.node_of(ends.to)};
  const int moves = health_.share({WireKind::kNicIn, fabric_.nic_of(usual.receiver)}) > 0 ? 0 : 1;
  const int stays = moves == 0 ? usual.receiver : usual.sender;
  const int first = first_device_of_node_[node[moves]], beyond = first_device_of_node_[node[moves] + 1];
  const int other = first_device_of_node_[node[1 - moves]], end = first_device_of_node_[node[1 - moves] + 1];
  const auto leads = [&](int mine, int theirs) {
    const Fabric::Gates wanted = moves == 0 ? Fabric::Gates{mine, theirs} : Fabric::Gates{theirs, mine};
    const Fabric::Gates gates = fabric_.gates(wanted.sender, wanted.receiver, ends.change);
    return gates.sender == wanted.sender && gates.receiver == wanted.receiver && !whole_paths(gates).empty();
  };
  std::vector<Fabric::Gates> left;
  for (int mine = first; mine < beyond; ++mine) {
    const int equal = other + (mine - first) % (end - other);
    int best = leads(mine, stays) ? stays : leads(mine, equal) ? equal : -1;
    for (int theirs = other; best < 0 && theirs < end; ++theirs)
      if (leads(mine, theirs)) best = theirs;
    if (best >= 0) left.push_back(moves == 0 ? Fabric::Gates{mine, best} : Fabric::Gates{best, mine});
  }
  return left;
}

// The fabric's own gates, or one pair of those around them: neighbours of either end take the next one.
std::optional<Fabric::Gates> FlowPaths::gates_if_any(const Ends& ends) {
  const Fabric::Gates usual = fabric_.gates(ends.from, ends.to, ends.change);
  if (health_.all_whole() || !whole_paths(usual).empty()) return usual;
  const std::vector<Fabric::Gates> left = gates_around(ends, usual);
  if (left.empty()) return std::nullopt;
  return left[static_cast<std::size_t>(ends.from + ends.to) % left.size()];
}

Fabric::Gates FlowPaths::gates_left(const Ends& ends) {
  const std::optional<Fabric::Gates> left = gates_if_any(ends);
  if (left) return *left;
  const std::string sentence = fmt::format(
      "no way is left from device {} (node {}) to device {} (node {}): too much of the network is broken",
      ends.from, fabric_.node_of(ends.from), ends.to, fabric_.node_of(ends.to));
  if (!damaged_at_.file.empty()) damaged_at_.fail(sentence);
  throw run_error(sentence);
}

bool FlowPaths::connected(int from, int to, RailChange change) {
  return fabric_.node_of(from) == fabric_.node_of(to) || gates_if_any({from, to, change}).has_value();
}

// A leaf picks among the uplinks from which something leads on, the spine among what leads on from there.
std::int32_t FlowPaths::picked(const std::vector<std::int32_t>& paths, std::uint64_t at_leaf,
                               std::uint64_t at_spine) const {
  const int uplinks = fabric_.leaf_uplinks();
  std::vector<std::int32_t> first, then;
  for (const std::int32_t path : paths) {
    if (std::find(first.begin(), first.end(), path % uplinks) == first.end()) first.push_back(path % uplinks);
  }
  const std::int32_t u = first[at_leaf % first.size()];
  for (const std::int32_t path : paths) {
    if (path % uplinks == u) then.push_back(path);
  }
  return then[at_spine % then.size()];
}

std::int32_t FlowPaths::hashed(Fabric::Gates gates, int queue_pair) {
  const std::uint64_t flow =
      mixed(mixed(mixed(seed_, static_cast<std::uint64_t>(fabric_.nic_of(gates.sender))),
                  static_cast<std::uint64_t>(fabric_.nic_of(gates.receiver))),
            static_cast<std::uint64_t>(queue_pair));
  const std::uint64_t at_leaf = mixed(flow, static_cast<std::uint64_t>(fabric_.leaf_of(gates.sender)));
  const std::uint64_t at_spine = mixed(flow, at_leaf);  // the switch is the one that at_leaf leads to
  if (!health_.all_whole()) return picked(whole_paths(gates), at_leaf, at_spine);
  const auto count = static_cast<std::uint64_t>(fabric_.num_paths(gates.sender, gates.receiver, kNone));
  const auto uplinks = static_cast<std::uint64_t>(fabric_.leaf_uplinks());
  if (count <= uplinks) return static_cast<std::int32_t>(at_leaf % count);
  return static_cast<std::int32_t>(at_leaf % uplinks + at_spine % (count / uplinks) * uplinks);
}

std::int32_t FlowPaths::by_destination(Fabric::Gates gates) {
  const int count = fabric_.num_paths(gates.sender, gates.receiver, kNone);
  const int uplinks = fabric_.leaf_uplinks();
  const int port =
      fabric_.leaf_of(gates.receiver) * fabric_.spec().leaf_ports + fabric_.leaf_port(gates.receiver);
  const int path =
      count <= uplinks ? port % count : port % uplinks + port / uplinks % (count / uplinks) * uplinks;
  if (health_.all_whole()) return path;
  const std::vector<std::int32_t>& whole = whole_paths(gates);
  const auto next = std::lower_bound(whole.begin(), whole.end(), path);
  return next == whole.end() ? whole.front() : *next;
}

// Adds up flows that chose the same.
void FlowPaths::add(FlowPath flow, std::vector<FlowPath>& into, std::size_t first) const {
  for (std::size_t i = first; i < into.size(); ++i) {
    if (into[i].path != flow.path || into[i].gates.sender != flow.gates.sender ||
        into[i].gates.receiver != flow.gates.receiver)
      continue;
    into[i].share += flow.share;
    return;
  }
  into.push_back(flow);
}

FlowPath FlowPaths::one_path(Fabric::Gates by, RailChange change, int queue_pair) {
  const bool by_hash = fabric_.spec().routing == Routing::kEcmp;
  return {by, by_hash ? hashed(by, queue_pair) : by_destination(by), 1.0 / flows_, change};
}

FlowPath FlowPaths::of_queue_pair(int from, int to, RailChange change, int queue_pair) {
  if (fabric_.node_of(from) == fabric_.node_of(to)) return {kNoGates, 0, 1.0 / flows_};
  return one_path(gates_left({from, to, change}), change, queue_pair);
}

void FlowPaths::choose_shared(Fabric::Gates by, RailChange change, std::vector<FlowPath>& into) {
  const auto levelled = shares_.find({fabric_.leaf_of(by.sender), fabric_.leaf_of(by.receiver)});
  if (levelled != shares_.end()) {
    for (const auto& [path, part] : levelled->second) into.push_back({by, path, part, change});
    return;
  }
  const std::vector<std::int32_t>& paths = whole_paths(by);
  for (const std::int32_t path : paths)
    into.push_back({by, path, 1.0 / static_cast<double>(paths.size()), change});
}

void FlowPaths::choose(int from, int to, RailChange change, std::vector<FlowPath>& into) {
  if (fabric_.node_of(from) == fabric_.node_of(to)) {
    into.push_back({kNoGates, 0, 1, change});
    return;
  }
  const Fabric::Gates by = gates_left({from, to, change});
  if (!single_) return choose_shared(by, change, into);
  const std::size_t first = into.size();
  for (int i = 0; i < flows_; ++i) add(one_path(by, change, i), into, first);
}

void FlowPaths::wires(Fabric::Gates gates, std::int32_t path, std::vector<WireId>& wires) const {
  fabric_.route_by_ports(gates.sender, gates.receiver, path, wires, kNone);
}

void FlowPaths::wires(int from, int to, const FlowPath& flow, std::vector<WireId>& wires) const {
  const auto [sender, receiver] = flow.gates;
  if (sender < 0) return fabric_.route_by_ports(from, to, 0, wires);
  if (fabric_.by_host(from, to)) {  // a NIC's device has no part in it: the copies are those of the two ends
    const std::size_t first = wires.size();
    this->wires(flow.gates, flow.path, wires);
    for (std::size_t i = first; i < wires.size(); ++i) {
      if (wires[i].kind == WireKind::kHostOut) wires[i].index = from;
      if (wires[i].kind == WireKind::kHostIn) wires[i].index = to;
    }
    return;
  }
  fabric_.route_by_ports(from, sender, 0, wires);
  this->wires(flow.gates, flow.path, wires);
  fabric_.route_by_ports(receiver, to, 0, wires);
}

Time FlowPaths::detour(int from, int to, const FlowPath& flow) const {
  const auto [sender, receiver] = flow.gates;
  if (sender < 0 || fabric_.by_host(from, to)) return {};
  const Time taken = fabric_.latency(from, sender) + fabric_.latency(sender, receiver, kNone) +
                     fabric_.latency(receiver, to);
  return std::max(Time{}, taken - fabric_.latency(from, to, flow.change));
}

}  // namespace moebius
