#include "sim/traffic/step_builder.h"

#include <algorithm>

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

bool is_upward(WireKind kind) {
  return kind == WireKind::kLeafUp || kind == WireKind::kPodUp || kind == WireKind::kRegionLink;
}

// Whether a wire is part of a message's way from NIC to NIC.
bool is_beyond_node(WireKind kind) {
  return kind != WireKind::kScaleUpOut && kind != WireKind::kScaleUpIn && kind != WireKind::kScaleUpPair &&
         kind != WireKind::kBoardOut && kind != WireKind::kBoardIn;
}

}  // namespace

void StepBuilder::begin() {
  for (const Load& load : loads_) load_of_wire_[load.wire] = -1;
  loads_.clear();
  nic_flows_.clear();
  flow_of_nics_.clear();
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

void StepBuilder::add_edge(const Edge& edge, const GroupSites& group) {
  const int from = group.members[edge.from].device, to = group.members[edge.to].device;
  if (from == to) {
    note_part({from, to, {{-1, -1}}, edge.bytes});
    const int stand_in = table_.local_copy(sites_.stand_in(from));
    return add({table_.local_copy(from), from, stand_in, edge.bytes, 1});
  }
  if (paths_.by_ports()) return add_edge_by_ports(edge, group);
  path_.clear();
  sites_.fabric().route(from, to, path_);
  for (const WireId wire : path_) add_crossing(wire, edge, 1, group);
}

void StepBuilder::note_part(const StepPart& part) {
  if (parts_) parts_->parts.push_back(part);
}

void StepBuilder::add_edge_by_ports(const Edge& edge, const GroupSites& group) {
  const int from = group.members[edge.from].device, to = group.members[edge.to].device;
  flow_paths_.clear();
  paths_.choose(from, to, flow_paths_);
  for (const FlowPath& flow : flow_paths_) {
    path_.clear();
    paths_.wires(from, to, flow, path_);
    for (const WireId wire : path_) add_crossing(wire, edge, flow.share, group);
    note_part({from, to, flow, edge.bytes});
    if (singly_) note_flow(flow, edge.bytes * flow.share);
    detour_ = std::max(detour_, paths_.detour(from, to, flow).seconds());
  }
}

// `share` of the edge's bytes crosses the wire.
void StepBuilder::add_crossing(WireId wire, const Edge& edge, double share, const GroupSites& group) {
  const double bytes = edge.bytes * share;
  // The sender's own wire stays in any case, so that every flow has one.
  if (!sites_.fabric().can_bind(wire.kind) && !leaves_sender(wire.kind)) {
    if (sites_.folded()) return;  // the wires of all others would be missing
    const int index = table_.wire(wire);
    return add({index, -1, index, bytes, share, Carried::kFree});
  }
  const int index = table_.wire(wire);
  const Carried carried = singly_ && is_beyond_node(wire.kind) ? Carried::kInFlows : Carried::kByItself;
  switch (owner_of(wire.kind)) {
    case Owner::kDevice:
      add({index, wire.index, table_.wire({wire.kind, sites_.stand_in(wire.index)}), bytes, share, carried});
      break;
    case Owner::kPair: {
      const bool of_nic = wire.kind == WireKind::kNicOutPort || wire.kind == WireKind::kNicInPort;
      const int device = of_nic ? wire.index / sites_.fabric().spec().nic_ports : -1;
      add({index, device, index, bytes, share, carried});
      break;
    }
    case Owner::kMany: {
      const double ranks = ranks_for_each(group, is_upward(wire.kind) ? edge.from : edge.to, wire);
      add({index, -1, index, bytes * ranks, share * ranks, carried});
      break;
    }
  }
}

double StepBuilder::ranks_for_each(const GroupSites& group, int member, WireId wire) {
  if (!sites_.folded()) return 1;
  const auto [entry, is_new] = ranks_for_each_.try_emplace({group.members[member].rank_class, wire}, 1);
  if (is_new) entry->second = sites_.ranks_for_each(group, member, wire);
  return entry->second;
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
    if (load.carried != Carried::kByItself) continue;
    step.flows.push_back({load.bytes / load.flows, {{load.wire, load.flows}}});
  }
  add_passed(step);
}

void StepBuilder::add_passed(Step& step) const {
  for (const Load& load : loads_) {
    if (load.carried == Carried::kFree) step.passed.push_back({load.wire, load.bytes});
  }
}

void StepBuilder::add_lockstep_flows(const Traffic& traffic, const GroupSites& group, Step& step) {
  std::vector<double> sizes;
  for (const Edge& edge : traffic.edges) {
    if (std::find(sizes.begin(), sizes.end(), edge.bytes) == sizes.end()) sizes.push_back(edge.bytes);
  }
  for (const double bytes : sizes) {
    begin();
    for (const Edge& edge : traffic.edges) {
      if (edge.bytes == bytes) add_edge(edge, group);
    }
    FlowClass flow{bytes, {}};
    for (const Load& load : folded_loads()) {
      if (load.carried == Carried::kByItself) flow.links.push_back({load.wire, load.flows});
    }
    add_passed(step);
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
    const int flows = paths_.single() ? paths_.flows_of_message() : 1;
    for (int i = 0; i < flows; ++i)
      step.pairs.push_back({from, to, edge.bytes / flows, traffic.most_rate / flows, i});
    step.pair_latency = std::max(step.pair_latency, sites_.fabric().latency(from, to).seconds());
  }
}

// The flows of a step begin together and none ends before its cores are done. Networks that look at messages
// pay what the wires do not take as a latency.
void StepBuilder::limit(const Traffic& traffic, Step& step) const {
  if (traffic.least_seconds <= 0) return;
  if (with_pairs_) {
    step.latency += std::max(0.0, traffic.least_seconds - alone(step));
    return;
  }
  for (FlowClass& flow : step.flows) {
    const double rate = flow.bytes / traffic.least_seconds;
    flow.most_rate = flow.most_rate > 0 ? std::min(flow.most_rate, rate) : rate;
  }
}

Step StepBuilder::build(const Traffic& traffic, const GroupSites& group) {
  Step step;
  ranks_for_each_.clear();
  detour_ = 0;
  singly_ = paths_.single() && !traffic.lockstep;
  level_paths(traffic, group);
  if (keep_parts_) {
    parts_ = std::make_shared<StepParts>();
    *parts_ = {traffic.lockstep, singly_, traffic.most_rate, {}};
  }
  if (traffic.lockstep) {
    add_lockstep_flows(traffic, group, step);
  } else {
    begin();
    for (const Edge& edge : traffic.edges) add_edge(edge, group);
    add_wire_flows(step);
  }
  for (FlowClass& flow : step.flows) flow.most_rate = traffic.most_rate;
  if (singly_) add_single_flows(traffic, step);
  step.latency = traffic.latency + detour_;
  limit(traffic, step);
  step.alone = step.latency + alone(step);
  step.parts = std::move(parts_);
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
