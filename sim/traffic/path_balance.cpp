#include "sim/traffic/path_balance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moebius {
namespace {

constexpr int kMostTurns = 50;
constexpr double kStill = 1e-3;  // of a pair's bytes

struct Port {
  double capacity = 0, bytes = 0;
};

// A path, beyond the leaves' ports: those of the pods on its way, and what is poured over it.
struct Path {
  std::int32_t number = 0;
  std::vector<int> pod_ports;
  double bytes = 0;
};

// The paths that leave by one uplink and so share the leaves' ports.
struct Climb {
  std::vector<int> leaf_ports;
  std::vector<Path> paths;
};

struct LeafPair {
  std::pair<int, int> leaves;
  double bytes = 0;
  std::vector<Climb> climbs;
};

bool is_leaf_port(WireKind kind) {
  return kind == WireKind::kLeafUpPort || kind == WireKind::kLeafDownPort;
}
bool is_pod_port(WireKind kind) {
  return kind == WireKind::kPodUpPort || kind == WireKind::kPodDownPort;
}

class Balance {
 public:
  Balance(const Fabric& fabric, FlowPaths& paths) : fabric_(fabric), paths_(paths) {}

  void add(Fabric::Gates gates, double bytes);
  void level();
  std::map<std::pair<int, int>, PathShares> shares() const;

 private:
  void add_path(Fabric::Gates gates, std::int32_t path, LeafPair& pair);
  int port(WireId wire);
  double room(const std::vector<int>& ports, double level) const;
  double room(const Climb& climb, double level) const;
  double room(const LeafPair& pair, double level) const;
  void pour(LeafPair& pair, double level);
  void take_back(LeafPair& pair);
  double moved(LeafPair& pair);

  const Fabric& fabric_;
  FlowPaths& paths_;
  std::vector<LeafPair> pairs_;
  std::map<std::pair<int, int>, std::size_t> pair_of_leaves_;
  std::vector<Port> ports_;
  std::map<WireId, int> port_of_wire_;
  std::vector<WireId> wires_;
};

int Balance::port(WireId wire) {
  const auto [known, is_new] = port_of_wire_.try_emplace(wire, static_cast<int>(ports_.size()));
  if (is_new) ports_.push_back({fabric_.capacity(wire).value * paths_.health().share(wire)});
  return known->second;
}

void Balance::add_path(Fabric::Gates gates, std::int32_t path, LeafPair& pair) {
  wires_.clear();
  paths_.wires(gates, path, wires_);
  std::vector<int> leaf_ports, pod_ports;
  for (const WireId wire : wires_) {
    if (is_leaf_port(wire.kind)) leaf_ports.push_back(port(wire));
    if (is_pod_port(wire.kind)) pod_ports.push_back(port(wire));
  }
  const auto same = [&](const Climb& climb) { return climb.leaf_ports == leaf_ports; };
  auto climb = std::find_if(pair.climbs.begin(), pair.climbs.end(), same);
  if (climb == pair.climbs.end()) climb = pair.climbs.insert(climb, {leaf_ports, {}});
  climb->paths.push_back({path, std::move(pod_ports)});
}

void Balance::add(Fabric::Gates gates, double bytes) {
  const std::pair<int, int> leaves{fabric_.leaf_of(gates.sender), fabric_.leaf_of(gates.receiver)};
  if (leaves.first == leaves.second) return;
  const auto [known, is_new] = pair_of_leaves_.try_emplace(leaves, pairs_.size());
  if (is_new) {
    pairs_.push_back({leaves, 0, {}});
    for (const std::int32_t path : paths_.whole_paths(gates)) add_path(gates, path, pairs_.back());
  }
  pairs_[known->second].bytes += bytes;
}

// Bytes that the ports take, all together in a row, until the first is at the level.
double Balance::room(const std::vector<int>& ports, double level) const {
  double least = std::numeric_limits<double>::infinity();
  for (const int port : ports) least = std::min(least, level * ports_[port].capacity - ports_[port].bytes);
  return std::max(0.0, least);
}

double Balance::room(const Climb& climb, double level) const {
  double beyond = 0;
  for (const Path& path : climb.paths) beyond += room(path.pod_ports, level);
  return std::min(beyond, room(climb.leaf_ports, level));
}

double Balance::room(const LeafPair& pair, double level) const {
  double sum = 0;
  for (const Climb& climb : pair.climbs) sum += room(climb, level);
  return sum;
}

void Balance::take_back(LeafPair& pair) {
  for (Climb& climb : pair.climbs) {
    for (Path& path : climb.paths) {
      for (const int port : climb.leaf_ports) ports_[port].bytes -= path.bytes;
      for (const int port : path.pod_ports) ports_[port].bytes -= path.bytes;
      path.bytes = 0;
    }
  }
}

// What each climb takes goes over its paths in proportion to their room.
void Balance::pour(LeafPair& pair, double level) {
  const double scale = pair.bytes / room(pair, level);  // 1, but for rounding
  for (Climb& climb : pair.climbs) {
    const double bytes = room(climb, level) * scale;
    std::vector<double> rooms;
    double beyond = 0;
    for (const Path& path : climb.paths) {
      rooms.push_back(path.pod_ports.empty() ? 1 : room(path.pod_ports, level));
      beyond += rooms.back();
    }
    for (std::size_t i = 0; i < rooms.size() && bytes > 0; ++i)
      climb.paths[i].bytes = bytes * rooms[i] / beyond;
  }
  for (const Climb& climb : pair.climbs) {
    for (const Path& path : climb.paths) {
      for (const int port : climb.leaf_ports) ports_[port].bytes += path.bytes;
      for (const int port : path.pod_ports) ports_[port].bytes += path.bytes;
    }
  }
}

// Pours the pair anew; returns the largest change of a path's bytes, as a share of the pair's.
double Balance::moved(LeafPair& pair) {
  std::vector<double> before;
  for (const Climb& climb : pair.climbs)
    for (const Path& path : climb.paths) before.push_back(path.bytes);
  take_back(pair);
  double low = 0, high = 1;
  while (room(pair, high) < pair.bytes) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (room(pair, middle) < pair.bytes ? low : high) = middle;
  }
  pour(pair, high);
  double most = 0;
  std::size_t i = 0;
  for (const Climb& climb : pair.climbs)
    for (const Path& path : climb.paths) most = std::max(most, std::abs(path.bytes - before[i++]));
  return most / pair.bytes;
}

void Balance::level() {
  for (int turn = 0; turn < kMostTurns; ++turn) {
    double most = 0;
    for (LeafPair& pair : pairs_) most = std::max(most, moved(pair));
    if (most < kStill) return;
  }
}

std::map<std::pair<int, int>, PathShares> Balance::shares() const {
  std::map<std::pair<int, int>, PathShares> all;
  for (const LeafPair& pair : pairs_) {
    PathShares& shares = all[pair.leaves];
    for (const Climb& climb : pair.climbs) {
      for (const Path& path : climb.paths) {
        if (path.bytes > 0) shares.emplace_back(path.number, path.bytes / pair.bytes);
      }
    }
  }
  return all;
}

}  // namespace

std::map<std::pair<int, int>, PathShares> levelled_shares(const Traffic& traffic, const GroupSites& group,
                                                          const Fabric& fabric, FlowPaths& paths) {
  std::vector<GateLoad> loads;
  std::vector<FlowPath> flows;
  paths.set_shares({});
  const RailChange change = traffic.climbs ? RailChange::kAtSpine : RailChange::kInNode;
  for (const Edge& edge : traffic.edges) {
    flows.clear();
    if (edge.from < 0 || edge.to < 0) continue;  // by a switch that reduces
    if (group.members[edge.from].node == group.members[edge.to].node || edge.bytes <= 0) continue;
    paths.choose(group.members[edge.from].device, group.members[edge.to].device, change, flows);
    for (const FlowPath& flow : flows) loads.push_back({flow.gates, edge.bytes * flow.share});
  }
  return levelled_shares(loads, fabric, paths);
}

std::map<std::pair<int, int>, PathShares> levelled_shares(const std::vector<GateLoad>& loads,
                                                          const Fabric& fabric, FlowPaths& paths) {
  Balance balance(fabric, paths);
  for (const GateLoad& load : loads) balance.add(load.gates, load.bytes);
  balance.level();
  return balance.shares();
}

}  // namespace moebius
