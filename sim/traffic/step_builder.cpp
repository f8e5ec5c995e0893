#include "sim/traffic/step_builder.h"

#include <algorithm>

#include "sim/traffic/mesh_pairs.h"

namespace moebius {
namespace {

// Whose a wire is: of one device, and so folded with it; of a pair of devices; or of many.
enum class Owner { kDevice, kPair, kMany };

Owner owner_of(WireKind kind) {
  switch (kind) {
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
    case WireKind::kNicOut:
    case WireKind::kNicIn:
    case WireKind::kBoardOut:
    case WireKind::kBoardIn:
      return Owner::kDevice;
    case WireKind::kScaleUpPair:
    case WireKind::kNicOutPort:  // by ports nothing is folded
    case WireKind::kNicInPort:
      return Owner::kPair;
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
    case WireKind::kPodUp:
    case WireKind::kPodDown:
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort:
    case WireKind::kRegionLink:
      return Owner::kMany;
  }
  return Owner::kMany;
}

bool leaves_sender(WireKind kind) {
  return kind == WireKind::kScaleUpOut || kind == WireKind::kScaleUpPair || kind == WireKind::kNicOut ||
         kind == WireKind::kNicOutPort;
}

constexpr double kAnySize = -1;

std::vector<int> devices_of(const Mesh& mesh, const GroupSites& group, const Sites& sites, int shift) {
  std::vector<int> devices;
  for (const std::int32_t member : mesh.members)
    devices.push_back(sites.device_of(group.members[member].rank + shift));
  return devices;
}

}  // namespace

void StepBuilder::begin() {
  for (const Load& load : loads_) load_of_wire_[load.wire] = -1;
  loads_.clear();
}

void StepBuilder::add(Load load) {
  if (load_of_wire_.size() < static_cast<std::size_t>(table_.size())) load_of_wire_.resize(table_.size(), -1);
  std::int32_t& at = load_of_wire_[load.wire];
  if (at < 0) {
    at = static_cast<std::int32_t>(loads_.size());
    loads_.push_back(load);
  } else {
    loads_[at].bytes += load.bytes;
    loads_[at].flows += load.flows;
  }
}

// Edges of one size, or of all with kAnySize.
void StepBuilder::add_edges(const Traffic& traffic, const GroupSites& group, double bytes) {
  const Part own = sites_.folded() ? Part::kOwned : Part::kAll;
  for (const Edge& edge : traffic.edges) {
    if (bytes != kAnySize && edge.bytes != bytes) continue;
    add_edge(group.members[edge.from].device, group.members[edge.to].device, edge.bytes, own);
  }
  if (!sites_.folded()) return;
  for (const std::int32_t shift : group.shifts) {
    for (const Edge& edge : traffic.edges) {
      if (bytes != kAnySize && edge.bytes != bytes) continue;
      add_edge(sites_.device_of(group.members[edge.from].rank + shift),
               sites_.device_of(group.members[edge.to].rank + shift), edge.bytes, Part::kShared);
    }
  }
}

void StepBuilder::add_edge(int from, int to, double bytes, Part part) {
  if (from == to) {
    const int stand_in = table_.local_copy(sites_.stand_in(from));
    if (part != Part::kShared) add({table_.local_copy(from), from, stand_in, bytes, 1});
    return;
  }
  path_.clear();
  sites_.fabric().route(from, to, path_);
  for (const WireId wire : path_) {
    const bool is_shared = owner_of(wire.kind) == Owner::kMany;
    if (part == Part::kAll || is_shared == (part == Part::kShared)) add_on(wire, bytes, 1);
  }
}

void StepBuilder::add_meshes(const Traffic& traffic, const GroupSites& group) {
  const auto of_size = [&](double bytes) {
    return [this, bytes](WireId wire, double pairs) { add_on(wire, bytes * pairs, pairs); };
  };
  for (const Mesh& mesh : traffic.meshes) {
    MeshPairs(devices_of(mesh, group, sites_, 0), sites_.fabric()).visit_own_wires(of_size(mesh.bytes));
    for (const std::int32_t shift : group.shifts)
      MeshPairs(devices_of(mesh, group, sites_, shift), sites_.fabric())
          .visit_shared_wires(of_size(mesh.bytes));
  }
}

void StepBuilder::add_on(WireId wire, double bytes, double flows) {
  // The sender's own wire stays in any case, so that every flow has one.
  if (!sites_.fabric().can_bind(wire.kind) && !leaves_sender(wire.kind)) return;
  const int index = table_.wire(wire);
  switch (owner_of(wire.kind)) {
    case Owner::kDevice:
      return add({index, wire.index, table_.wire({wire.kind, sites_.stand_in(wire.index)}), bytes, flows});
    case Owner::kPair:
      return add({index, -1, index, bytes, flows});
    case Owner::kMany:
      return add({index, -1, table_.wire(sites_.stand_in(wire)), bytes, flows});
  }
}

// One load for each wire that is simulated, in the order of first use.
std::vector<StepBuilder::Load> StepBuilder::folded_loads() const {
  if (!sites_.folded()) return loads_;
  std::vector<Load> folded;
  std::vector<std::int32_t> at(table_.size(), -1);
  for (const Load& load : loads_) {
    if (at[load.stand_in] < 0) {
      at[load.stand_in] = static_cast<std::int32_t>(folded.size());
      folded.push_back(load);
      folded.back().wire = load.stand_in;
    } else if (Load& most = folded[at[load.stand_in]]; load.bytes > most.bytes) {
      most.bytes = load.bytes;
      most.flows = load.flows;
    }
  }
  return folded;
}

void StepBuilder::add_wire_flows(Step& step) {
  for (const Load& load : folded_loads()) {
    step.flows.push_back({load.bytes / load.flows, {{load.wire, load.flows}}});
  }
}

void StepBuilder::add_lockstep_flows(const Traffic& traffic, const GroupSites& group, Step& step) {
  std::vector<double> sizes;
  for (const Edge& edge : traffic.edges) {
    if (std::find(sizes.begin(), sizes.end(), edge.bytes) == sizes.end()) sizes.push_back(edge.bytes);
  }
  for (const double bytes : sizes) {
    begin();
    add_edges(traffic, group, bytes);
    FlowClass flow{bytes, {}};
    for (const Load& load : folded_loads()) flow.links.push_back({load.wire, load.flows});
    step.flows.push_back(std::move(flow));
  }
}

// Seconds until the busiest wire has passed everything.
double StepBuilder::alone(const Step& step) const {
  std::vector<double> busy(table_.size(), 0);
  double most = 0;
  for (const FlowClass& flow : step.flows) {
    if (flow.most_rate > 0) most = std::max(most, flow.bytes / flow.most_rate);
    for (const Link& link : flow.links) {
      busy[link.wire] += flow.bytes * link.weight / table_.capacity(link.wire);
      most = std::max(most, busy[link.wire]);
    }
  }
  return most;
}

void StepBuilder::add_pairs(const Traffic& traffic, const GroupSites& group, Step& step) const {
  for (const Edge& edge : traffic.edges) {
    const int from = group.members[edge.from].device, to = group.members[edge.to].device;
    step.pairs.push_back({from, to, edge.bytes, traffic.most_rate});
    step.pair_latency = std::max(step.pair_latency, sites_.fabric().latency(from, to).seconds());
  }
}

Step StepBuilder::build(const Traffic& traffic, const GroupSites& group) {
  Step step;
  step.latency = traffic.latency;
  if (traffic.lockstep) {
    add_lockstep_flows(traffic, group, step);
  } else {
    begin();
    add_edges(traffic, group, kAnySize);
    add_meshes(traffic, group);
    add_wire_flows(step);
  }
  for (FlowClass& flow : step.flows) {
    flow.most_rate = traffic.most_rate;
    flow.queue = traffic.queue;
  }
  step.alone = step.latency + alone(step);
  if (with_pairs_) add_pairs(traffic, group, step);
  return step;
}

int StepBuilder::busiest_member(const GroupSites& group) const {
  double most = 0;
  std::int32_t device = -1;
  for (const Load& load : loads_) {
    const double busy = load.bytes / table_.capacity(load.wire);
    if (load.device < 0 || busy <= most * (1 + 1e-9)) continue;
    most = busy;
    device = load.device;
  }
  for (int i = 0; i < group.size(); ++i) {
    if (group.members[i].device == device) return i;
  }
  return 0;
}

}  // namespace moebius
