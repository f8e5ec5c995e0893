#include "sim/traffic/step_builder.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "hw/error.h"
#include "sim/traffic/mesh_pairs.h"

namespace moebius {
namespace {

constexpr double kAnySize = -1;

std::vector<int> devices_of(const Mesh& mesh, const GroupSites& group, const Sites& sites, int shift) {
  std::vector<int> devices;
  for (const std::int32_t member : mesh.members)
    devices.push_back(sites.device_of(group.members[member].rank + shift));
  return devices;
}

RailChange rail_change(const Traffic& traffic) {
  return traffic.climbs ? RailChange::kAtSpine : RailChange::kInNode;
}

// The NIC that sends over the wire, whose ports are posted to as one; -1: none does.
int nic_behind(WireId wire, const Fabric& fabric) {
  if (wire.kind == WireKind::kNicOutPort) return wire.index / fabric.spec().nic_ports;
  return wire.kind == WireKind::kNicOut ? wire.index : -1;
}

// Chunks of a pipeline of h hops, each of `alpha` and `beta` seconds for the whole buffer: m of them take
// (m + h - 1) (alpha + beta / m), least at m = sqrt((h - 1) beta / alpha). What of it is not beta.
double pipeline_latency(int hops, double alpha, double beta) {
  if (alpha <= 0) return 0;
  const double best = std::sqrt((hops - 1) * beta / alpha);
  const double chunks = std::clamp(std::floor(best), 1.0, 0x1p20);
  return (chunks + hops - 1) * alpha + (hops - 1) * beta / chunks;
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

// A switch reduces where it stands first, so that a leaf passes on one stream, however many members hang
// below it, which is no more than one of their NICs sends: trunks do not bind and are left out.
void StepBuilder::add_switch_edge(const Edge& edge, const GroupSites& group) {
  const bool up = edge.from >= 0;
  const bool inside = std::min(edge.from, edge.to) == kNodeSwitch;
  const int device = group.members[up ? edge.from : edge.to].device;
  const WireKind kind = inside ? (up ? WireKind::kScaleUpOut : WireKind::kScaleUpIn)
                               : (up ? WireKind::kNicOut : WireKind::kNicIn);
  const WireId wire = sites_.fabric().own_wire(kind, device);
  if (wire.kind == WireKind::kNicOut && edge.messages > 0) add_posting(wire.index, edge.messages);
  add_on(wire, edge.bytes, 1);
}

void StepBuilder::add_posting(int nic, double messages) {
  const int wire = table_.posting(nic);
  if (wire < 0) return;
  add({.wire = wire,
       .device = nic,
       .stand_in = table_.posting(sites_.stand_in(nic)),
       .bytes = messages,
       .flows = 1,
       .of_nic = true});
}

// Folding: what other ranks of a class send through the NICs that they share with those that are simulated.
void StepBuilder::share_nics(const GroupSites& group) {
  if (!sites_.folded()) return;
  for (Load& load : loads_) {
    if (!load.of_nic) continue;
    load.times = sites_.ranks_a_member(group, load.device);
    load.bytes *= load.times;
    load.flows *= load.times;
  }
}

// Edges of one size, or of all with kAnySize.
void StepBuilder::add_edges(const Traffic& traffic, const GroupSites& group, double bytes) {
  const RailChange change = rail_change(traffic);
  const Part own = sites_.folded() ? Part::kOwned : Part::kAll;
  for (const Edge& edge : traffic.edges) {
    if (bytes != kAnySize && edge.bytes != bytes) continue;
    if (edge.from < 0 || edge.to < 0) {
      add_switch_edge(edge, group);
    } else {
      add_edge(group.members[edge.from].device, group.members[edge.to].device,
               {edge.bytes, edge.messages, own, change});
    }
  }
  if (!sites_.folded()) return;
  for (const std::int32_t shift : shifts_of(group, change)) {
    for (const Edge& edge : traffic.edges) {
      if (edge.from < 0 || edge.to < 0 || (bytes != kAnySize && edge.bytes != bytes)) continue;
      add_edge(sites_.device_of(group.members[edge.from].rank + shift),
               sites_.device_of(group.members[edge.to].rank + shift), {edge.bytes, 0, Part::kShared, change});
    }
  }
}

void StepBuilder::add_edge(int from, int to, const Way& way) {
  if (from == to) {
    note_part({from, to, {{-1, -1}}, way.bytes});
    if (way.part != Part::kShared)
      add({table_.local_copy(from), from, table_.local_copy(sites_.stand_in(from)), way.bytes, 1});
    return;
  }
  if (paths_.by_ports()) return add_edge_by_ports(from, to, way);
  // What many groups send over leaves and pods comes by once only.
  if (way.part == Part::kShared || !learns_) return take_way(from, to, way, nullptr);
  KnownWay& known = place_of_way(from, to, way);
  if (known.from != from || known.to != to || known.part != way.part || known.change != way.change)
    return take_way(from, to, way, &known);
  for (const Hop& hop : known.hops) {
    if (hop.nic >= 0 && way.messages > 0) add_posting(hop.nic, way.messages);
    take_hop(hop, way);
  }
}

void StepBuilder::note_part(const StepPart& part) {
  if (parts_) parts_->parts.push_back(part);
}

void StepBuilder::add_edge_by_ports(int from, int to, const Way& way) {
  flow_paths_.clear();
  paths_.choose(from, to, way.change, flow_paths_);
  for (const FlowPath& flow : flow_paths_) {
    path_.clear();
    paths_.wires(from, to, flow, path_);
    for (const WireId wire : path_) {
      const int nic = nic_behind(wire, sites_.fabric());
      if (nic >= 0 && way.messages > 0) add_posting(nic, way.messages * flow.share);
      add_on(wire, way.bytes * flow.share, flow.share);
    }
    note_part({from, to, flow, way.bytes});
    if (singly_) note_flow(flow, way.bytes * flow.share);
    detour_ = std::max(detour_, paths_.detour(from, to, flow).seconds());
  }
}

void StepBuilder::add_meshes(const Traffic& traffic, const GroupSites& group) {
  const RailChange change = rail_change(traffic);
  const Fabric& fabric = sites_.fabric();
  for (const Mesh& mesh : traffic.meshes) {
    const std::vector<int> devices = devices_of(mesh, group, sites_, 0);
    std::unordered_map<int, double> messages;
    for (std::size_t i = 0; i < devices.size(); ++i) messages[devices[i]] = mesh.messages[i];
    MeshPairs(devices, fabric, change).visit_own_wires([&](WireId wire, int sender, double pairs) {
      if (wire.kind == WireKind::kNicOut) add_posting(wire.index, messages.at(sender) * pairs);
      add_on(wire, mesh.bytes * pairs, pairs);
    });
    for (const std::int32_t shift : shifts_of(group, change)) {
      const MeshPairs pairs(devices_of(mesh, group, sites_, shift), fabric, change);
      pairs.visit_shared_wires([&](WireId wire, int, double n) { add_on(wire, mesh.bytes * n, n); });
    }
  }
}

void StepBuilder::add_on(WireId wire, double bytes, double flows) {
  Load load = load_on(wire);
  if (load.wire < 0) return;
  load.bytes = bytes;
  load.flows = flows;
  add(load);
}

// One load for each wire that is simulated, in the order of first use.
std::vector<StepBuilder::Load> StepBuilder::folded_loads() {
  if (!sites_.folded()) return loads_;
  std::vector<Load> folded;
  folded_at_.resize(table_.size(), -1);
  for (const Load& load : loads_) {
    std::int32_t& at = folded_at_[load.stand_in];
    if (at < 0) {
      at = static_cast<std::int32_t>(folded.size());
      folded.push_back(load);
      folded.back().wire = load.stand_in;
    } else if (Load& most = folded[at]; load.bytes > most.bytes) {
      most.bytes = load.bytes;
      most.flows = load.flows;
    }
  }
  for (const Load& load : folded) folded_at_[load.wire] = -1;
  return folded;
}

void StepBuilder::add_wire_flows(const Traffic& traffic, const GroupSites& group, Step& step) {
  for (const Load& load : folded_loads()) {
    if (load.carried != Carried::kByItself) continue;
    step.flows.push_back({load.bytes / load.flows, {{load.wire, load.flows}}});
  }
  add_passed(step);
  account_for_members(traffic, group, step);
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
    add_edges(traffic, group, bytes);
    share_nics(group);
    FlowClass flow{bytes, {}};
    for (const Load& load : folded_loads()) {
      if (load.carried == Carried::kByItself) flow.links.push_back({load.wire, load.flows});
    }
    add_passed(step);
    account_for_members(traffic, group, step);
    step.flows.push_back(std::move(flow));
  }
}

// Seconds until the busiest wire has passed everything.
double StepBuilder::alone(const Step& step) {
  busy_.resize(table_.size(), 0);
  double most = 0;
  for (const FlowClass& flow : step.flows) {
    if (flow.most_rate > 0) most = std::max(most, flow.bytes / flow.most_rate);
    for (const Link& link : flow.links) {
      busy_[link.wire] += flow.bytes * link.weight / table_.capacity(link.wire);
      most = std::max(most, busy_[link.wire]);
    }
  }
  for (const FlowClass& flow : step.flows)
    for (const Link& link : flow.links) busy_[link.wire] = 0;
  return most;
}

// Of all groups that this one stands for.
void StepBuilder::add_pairs(const Traffic& traffic, const GroupSites& group, Step& step) const {
  const int flows = paths_.single() ? paths_.flows_of_message() : 1;
  for (const Edge& edge : traffic.edges) {
    if (edge.from < 0 || edge.to < 0)
      throw run_error(
          "networks of single messages have no switches that reduce: use fluid or another algorithm");
    for (const std::int32_t shift : group.all_shifts) {
      const int from = sites_.device_of(group.members[edge.from].rank + shift);
      const int to = sites_.device_of(group.members[edge.to].rank + shift);
      for (int i = 0; i < flows; ++i)
        step.pairs.push_back(
            {from, to, edge.bytes / flows, traffic.most_rate / flows, i, edge.messages / flows,
             paths_.single() ? paths_.of_queue_pair(from, to, rail_change(traffic), i).path : -1,
             traffic.climbs});
      step.pair_latency = std::max(step.pair_latency, sites_.fabric().latency(from, to).seconds());
    }
  }
}

// What the first chunks of messages through host memory take in the stages that do not bind: of a pipeline
// the mean over its edges, as messages take them in turn; of others the
// longest, as often as a message meets it at most.
double StepBuilder::chunk_seconds(const Traffic& traffic, const GroupSites& group) const {
  double longest = 0, sum = 0, bytes = 0;
  if (sites_.fabric().spec().by_host.empty()) return 0;
  for (const Edge& edge : traffic.edges) {
    if (edge.from < 0 || edge.to < 0) continue;  // a switch's
    const int from = group.members[edge.from].device, to = group.members[edge.to].device;
    const double seconds = sites_.fabric().chunk_seconds(from, to, edge.bytes / traffic.rounds);
    longest = std::max(longest, seconds);
    sum += seconds * edge.bytes;
    bytes += edge.bytes;
  }
  if (bytes <= 0) return 0;
  return traffic.lockstep ? std::max(traffic.rounds, traffic.depth) * sum / bytes : traffic.depth * longest;
}

// The flows of a step begin together and none ends before its cores are done. Networks that look at messages
// pay what the wires do not take as a latency, which is given back.
double StepBuilder::limit(const Traffic& traffic, Step& step) {
  if (traffic.least_seconds <= 0) return 0;
  if (with_pairs_) return std::max(0.0, traffic.least_seconds - alone(step));
  for (FlowClass& flow : step.flows) {
    const double rate = flow.bytes / traffic.least_seconds;
    flow.most_rate = flow.most_rate > 0 ? std::min(flow.most_rate, rate) : rate;
  }
  return 0;
}

// Whose traffic is on leaf and pod wires.
const std::vector<std::int32_t>& StepBuilder::shifts_of(const GroupSites& group, RailChange change) const {
  static const std::vector<std::int32_t> own = {0};
  return own_only_ || !sites_.folded() ? own : group.shifts_of(change);
}

// Seconds of the group's bytes where no other group that it stands for sends any. What a library knows of its
// call, and latency, follow these alone.
double StepBuilder::alone_of_own(const Traffic& traffic, const GroupSites& group) {
  own_only_ = true;
  Step own;
  add_flows(traffic, group, own);
  limit(traffic, own);
  own_only_ = false;
  return alone(own);
}

void StepBuilder::add_flows(const Traffic& traffic, const GroupSites& group, Step& step) {
  if (traffic.lockstep) {
    add_lockstep_flows(traffic, group, step);
  } else {
    begin();
    add_edges(traffic, group, kAnySize);
    add_meshes(traffic, group);
    share_nics(group);
    add_wire_flows(traffic, group, step);
  }
  for (FlowClass& flow : step.flows) flow.most_rate = traffic.most_rate;
  if (singly_) add_single_flows(traffic, step);
}

Step StepBuilder::build(const Traffic& traffic, const GroupSites& group) {
  const bool by_host = !sites_.fabric().spec().by_host.empty();
  if ((paths_.by_ports() || with_pairs_ || by_host) && !traffic.meshes.empty())
    return build(listed(traffic), group);
  const bool meets_others = sites_.folded() && group.shifts_of(rail_change(traffic)).size() > 1;
  detour_ = 0;
  singly_ = paths_.single() && !traffic.lockstep;
  learns_ = traffic.edges.size() <= std::size_t{1} << kWayBits;
  level_paths(traffic, group);
  const double by_itself = meets_others ? alone_of_own(traffic, group) : 0;
  if (keep_parts_) {
    parts_ = std::make_shared<StepParts>();
    *parts_ = {traffic.lockstep, singly_, traffic.most_rate, {}};
  }
  Step step;
  add_flows(traffic, group, step);
  const double beyond_wires = limit(traffic, step), transfer = alone(step);
  step.own = meets_others ? by_itself : transfer;
  double latency = traffic.latency;
  if (traffic.hops > 1)
    latency = pipeline_latency(traffic.hops, traffic.latency / traffic.hops, step.own + beyond_wires);
  step.latency = latency + detour_ + chunk_seconds(traffic, group) + beyond_wires;
  step.alone = step.latency + transfer;
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
