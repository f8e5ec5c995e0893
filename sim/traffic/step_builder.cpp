#include "sim/traffic/step_builder.h"

#include <algorithm>
#include <cmath>

#include "hw/error.h"

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

RailChange rail_change(const Traffic& traffic) {
  return traffic.climbs ? RailChange::kAtSpine : RailChange::kInNode;
}

// Chunks of a pipeline of h hops, each of `alpha` and `beta` seconds for the whole buffer: m of them take
// (m + h - 1) (alpha + beta / m), least at m = sqrt((h - 1) beta / alpha). What of it is not beta.
double pipeline_latency(int hops, double alpha, double beta) {
  if (alpha <= 0) return 0;
  const double best = std::sqrt((hops - 1) * beta / alpha);
  const double chunks = std::clamp(std::floor(best), 1.0, 0x1p20);
  return (chunks + hops - 1) * alpha + (hops - 1) * beta / chunks;
}

bool is_upward(WireKind kind) {
  return kind == WireKind::kLeafUp || kind == WireKind::kPodUp || kind == WireKind::kRegionLink;
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

// A switch reduces where it stands first, so that a leaf passes on one stream, however many members hang
// below it, which is no more than one of their NICs sends: trunks do not bind and are left out.
void StepBuilder::find_way_to_switch(const Edge& edge, const GroupSites& group) {
  const bool up = edge.from >= 0;
  const bool inside = std::min(edge.from, edge.to) == kNodeSwitch;
  const int device = group.members[up ? edge.from : edge.to].device;
  const WireKind kind = inside ? (up ? WireKind::kScaleUpOut : WireKind::kScaleUpIn)
                               : (up ? WireKind::kNicOut : WireKind::kNicIn);
  path_.push_back(sites_.fabric().own_wire(kind, device));
}

void StepBuilder::add_posting(int nic, double messages) {
  const int wire = table_.posting(nic);
  if (wire >= 0) add({wire, nic, table_.posting(sites_.stand_in(nic)), messages, 1});
}

void StepBuilder::add_edge(const Edge& edge, const GroupSites& group, RailChange change) {
  path_.clear();
  if (edge.from < 0 || edge.to < 0) {
    find_way_to_switch(edge, group);
    return add_way(edge, group);
  }
  const int from = group.members[edge.from].device, to = group.members[edge.to].device;
  if (from == to) {
    const int stand_in = table_.local_copy(sites_.stand_in(from));
    return add({table_.local_copy(from), from, stand_in, edge.bytes, 1});
  }
  sites_.fabric().route(from, to, path_, change);
  add_way(edge, group);
}

void StepBuilder::add_way(const Edge& edge, const GroupSites& group) {
  for (const WireId wire : path_) {
    if (edge.messages > 0 && wire.kind == WireKind::kNicOut) add_posting(wire.index, edge.messages);
    // The sender's own wire stays in any case, so that every flow has one.
    if (!sites_.fabric().can_bind(wire.kind) && !leaves_sender(wire.kind)) continue;
    const int index = table_.wire(wire);
    switch (owner_of(wire.kind)) {
      case Owner::kDevice:
        add({index, wire.index, table_.wire({wire.kind, sites_.stand_in(wire.index)}), edge.bytes, 1});
        break;
      case Owner::kPair:
        add({index, -1, index, edge.bytes, 1});
        break;
      case Owner::kMany: {
        const double ranks = ranks_for_each(group, is_upward(wire.kind) ? edge.from : edge.to, wire);
        add({index, -1, index, edge.bytes * ranks, ranks});
        break;
      }
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
    step.flows.push_back({load.bytes / load.flows, {{load.wire, load.flows}}});
  }
}

void StepBuilder::add_lockstep_flows(const Traffic& traffic, const GroupSites& group, Step& step) {
  const RailChange change = rail_change(traffic);
  std::vector<double> sizes;
  for (const Edge& edge : traffic.edges) {
    if (std::find(sizes.begin(), sizes.end(), edge.bytes) == sizes.end()) sizes.push_back(edge.bytes);
  }
  for (const double bytes : sizes) {
    begin();
    for (const Edge& edge : traffic.edges) {
      if (edge.bytes == bytes) add_edge(edge, group, change);
    }
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
    if (edge.from < 0 || edge.to < 0)
      throw run_error(
          "networks of single messages have no switches that reduce: use fluid or another algorithm");
    const int from = group.members[edge.from].device, to = group.members[edge.to].device;
    step.pairs.push_back({from, to, edge.bytes, traffic.most_rate});
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
  step.latency = traffic.latency;
  if (traffic.lockstep) {
    add_lockstep_flows(traffic, group, step);
  } else {
    begin();
    for (const Edge& edge : traffic.edges) add_edge(edge, group, rail_change(traffic));
    add_wire_flows(step);
  }
  for (FlowClass& flow : step.flows) flow.most_rate = traffic.most_rate;
  limit(traffic, step);
  const double transfer = alone(step);
  if (traffic.hops > 1)
    step.latency = pipeline_latency(traffic.hops, traffic.latency / traffic.hops, transfer);
  step.alone = step.latency + transfer;
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
