#include "sim/traffic/mesh_pairs.h"

#include <algorithm>
#include <map>
#include <utility>

namespace moebius {
namespace {

// The wires of a way between two nodes: up to the sender's NIC, between the NICs, and from the receiver's on.
struct Parts {
  std::vector<WireId> wires;
  std::size_t nic_out = 0, nic_in = 0;
};

void split(const Fabric& fabric, int from, int to, RailChange change, Parts& parts) {
  parts.wires.clear();
  fabric.route(from, to, parts.wires, change);
  parts.nic_out = parts.nic_in = 0;
  for (std::size_t i = 0; i < parts.wires.size(); ++i) {
    if (parts.wires[i].kind == WireKind::kNicOut) parts.nic_out = i;
    if (parts.wires[i].kind == WireKind::kNicIn) parts.nic_in = i;
  }
}

}  // namespace

void MeshPairs::Sample::add(const Place& place) {
  if (size++ == 0) {
    device = place.device;
    node = place.node;
  } else if (device_elsewhere < 0 && place.node != node) {
    device_elsewhere = place.device;
  }
}

MeshPairs::MeshPairs(const std::vector<int>& devices, const Fabric& fabric, RailChange change)
    : fabric_(fabric), change_(change) {
  std::map<std::pair<int, int>, int> kinds, cells;  // pool and local index; kind and leaf
  for (const int device : devices) {
    const Fabric::Standing at = fabric.standing(device);
    const int kind = kinds.try_emplace({at.pool, at.local}, static_cast<int>(kinds.size())).first->second;
    const int cell = cells.try_emplace({kind, at.leaf}, static_cast<int>(cells.size())).first->second;
    places_.push_back({device, at.node, kind, cell});
  }
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return a.device < b.device; });
  kinds_.resize(kinds.size());
  cells_.resize(cells.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto at = static_cast<int>(i);
    if (i == 0 || places_[i].node != places_[i - 1].node) nodes_.push_back({at, at});
    nodes_.back().last = at + 1;
    kinds_[places_[i].kind].add(places_[i]);
    cells_[places_[i].cell].add(places_[i]);
  }
}

void MeshPairs::visit_own_wires(const Visit& visit) const {
  Parts way;
  std::vector<std::int64_t> inside(kinds_.size());
  for (const Node& node : nodes_) {
    std::fill(inside.begin(), inside.end(), 0);
    for (int i = node.first; i < node.last; ++i) ++inside[places_[i].kind];
    for (int i = node.first; i < node.last; ++i) {
      const Place& me = places_[i];
      for (int j = node.first; j < node.last; ++j) {
        if (i == j) continue;
        way.wires.clear();
        fabric_.route(me.device, places_[j].device, way.wires, change_);
        for (const WireId wire : way.wires) visit(wire, me.device, 1);
      }
      for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        const auto pairs = static_cast<double>(kinds_[kind].size - inside[kind]);
        if (pairs == 0) continue;
        const int other = kinds_[kind].outside(me.node);
        split(fabric_, me.device, other, change_, way);
        for (std::size_t w = 0; w <= way.nic_out; ++w) visit(way.wires[w], me.device, pairs);
        split(fabric_, other, me.device, change_, way);
        for (std::size_t w = way.nic_in; w < way.wires.size(); ++w) visit(way.wires[w], other, pairs);
      }
    }
  }
}

// By cell and cell: ordered pairs of devices of one node, each device with itself included.
std::vector<std::int32_t> MeshPairs::pairs_in_nodes() const {
  std::vector<std::int32_t> pairs(cells_.size() * cells_.size());
  for (const Node& node : nodes_) {
    for (int i = node.first; i < node.last; ++i) {
      for (int j = node.first; j < node.last; ++j) ++pairs[places_[i].cell * cells_.size() + places_[j].cell];
    }
  }
  return pairs;
}

// Two devices in different nodes that stand for all such pairs of the two cells.
void MeshPairs::visit_cells(const std::function<void(int from, int to, double pairs)>& visit) const {
  const std::vector<std::int32_t> in_nodes = pairs_in_nodes();
  for (std::size_t a = 0; a < cells_.size(); ++a) {
    for (std::size_t b = 0; b < cells_.size(); ++b) {
      const std::int64_t pairs = cells_[a].size * cells_[b].size - in_nodes[a * cells_.size() + b];
      if (pairs == 0) continue;
      int from = cells_[a].device, to = cells_[b].outside(cells_[a].node);
      if (to < 0) {  // all of b stand in a's first node, so that another node has one of a
        from = cells_[a].outside(cells_[b].node);
        to = cells_[b].device;
      }
      visit(from, to, static_cast<double>(pairs));
    }
  }
}

void MeshPairs::visit_shared_wires(const Visit& visit) const {
  Parts way;
  visit_cells([&](int from, int to, double pairs) {
    split(fabric_, from, to, change_, way);
    for (std::size_t w = way.nic_out + 1; w < way.nic_in; ++w) {
      visit(way.wires[w], from, pairs);
    }
  });
}

void MeshPairs::visit_latencies(const Latency& visit) const {
  for (const Node& node : nodes_) {
    for (int i = node.first; i < node.last; ++i) {
      for (int j = node.first; j < node.last; ++j) {
        if (i != j) visit(fabric_.latency(places_[i].device, places_[j].device, change_).seconds(), 1);
      }
    }
  }
  visit_cells(
      [&](int from, int to, double pairs) { visit(fabric_.latency(from, to, change_).seconds(), pairs); });
}

double MeshPairs::largest_latency() const {
  double largest = 0;
  visit_latencies([&](double seconds, double) { largest = std::max(largest, seconds); });
  return largest;
}

double MeshPairs::mean_latency() const {
  double sum = 0, all = 0;
  visit_latencies([&](double seconds, double pairs) {
    sum += seconds * pairs;
    all += pairs;
  });
  return all > 0 ? sum / all : 0;
}

}  // namespace moebius
