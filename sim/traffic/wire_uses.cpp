#include "sim/traffic/wire_uses.h"

#include <algorithm>
#include <array>

namespace moebius {
namespace {

// Bytes by wire of one kind, by index; messages by NIC.
struct Loads {
  std::array<std::vector<double>, kNumWireKinds> bytes;
  std::vector<double> messages;
};

void add(double amount, std::int32_t index, std::vector<double>& loads) {
  if (loads.size() <= static_cast<std::size_t>(index)) loads.resize(index + 1, 0);
  loads[index] += amount;
}

void find_way(const Edge& edge, RailChange change, const GroupSites& group, const Fabric& fabric,
              std::vector<WireId>& path) {
  path.clear();
  const bool up = edge.from >= 0, down = edge.to >= 0;
  if (up && down) {
    const int from = group.members[edge.from].device, to = group.members[edge.to].device;
    return fabric.route(from, to, path, change);
  }
  const bool inside = std::min(edge.from, edge.to) == kNodeSwitch;
  const WireKind kind = inside ? (up ? WireKind::kScaleUpOut : WireKind::kScaleUpIn)
                               : (up ? WireKind::kNicOut : WireKind::kNicIn);
  path.push_back(fabric.own_wire(kind, group.members[up ? edge.from : edge.to].device));
}

void add_step(const Traffic& step, const GroupSites& group, const Fabric& fabric, Loads& loads) {
  const RailChange change = step.climbs ? RailChange::kAtSpine : RailChange::kInNode;
  std::vector<WireId> path;
  for (const Edge& edge : listed(step).edges) {
    find_way(edge, change, group, fabric, path);
    for (const WireId wire : path) {
      add(edge.bytes, wire.index, loads.bytes[static_cast<int>(wire.kind)]);
      if (wire.kind == WireKind::kNicOut) add(edge.messages, wire.index, loads.messages);
    }
  }
}

WireUse use_of(WireKind kind, const std::vector<double>& loads, const Fabric& fabric) {
  WireUse use{.kind = std::string(to_string(kind))};
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (loads[i] <= 0) continue;
    ++use.wires;
    use.bytes += loads[i];
    use.busiest_bytes = std::max(use.busiest_bytes, loads[i]);
    const double capacity = fabric.capacity({kind, static_cast<std::int32_t>(i)}).value;
    use.busiest_seconds = std::max(use.busiest_seconds, loads[i] / capacity);
  }
  return use;
}

}  // namespace

std::vector<WireUse> wire_uses(const std::vector<Traffic>& steps, const GroupSites& group,
                               const Fabric& fabric) {
  Loads loads;
  for (const Traffic& step : steps) add_step(step, group, fabric, loads);
  std::vector<WireUse> uses;
  for (int kind = 0; kind < kNumWireKinds; ++kind) {
    WireUse use = use_of(static_cast<WireKind>(kind), loads.bytes[kind], fabric);
    if (use.wires == 0) continue;
    if (static_cast<WireKind>(kind) == WireKind::kNicOut && !loads.messages.empty())
      use.messages = *std::max_element(loads.messages.begin(), loads.messages.end());
    use.posting_seconds = use.messages * fabric.spec().message_time.seconds();
    uses.push_back(use);
  }
  return uses;
}

}  // namespace moebius
