// Messages on single paths, as flows from NIC to NIC: part of StepBuilder.
#include "sim/traffic/path_balance.h"
#include "sim/traffic/step_builder.h"

namespace moebius {
namespace {

bool is_of_host(WireKind kind) {
  return kind == WireKind::kHostOut || kind == WireKind::kHostIn || kind == WireKind::kHostMemory;
}

}  // namespace

void StepBuilder::note_flow(const FlowPath& flow, double bytes) {
  if (flow.gates.sender < 0) return;  // inside a node
  const Fabric& fabric = sites_.fabric();
  const std::array<int, 3> key{fabric.nic_of(flow.gates.sender), fabric.nic_of(flow.gates.receiver),
                               flow.path};
  const auto [known, is_new] = flow_of_nics_.try_emplace(key, nic_flows_.size());
  if (is_new) nic_flows_.push_back({flow, 0, 0});
  nic_flows_[known->second].bytes += bytes;
  ++nic_flows_[known->second].messages;
}

// A class for each pair of NICs and path: as many flows as queue pairs chose the path, each with its part of
// all messages.
void StepBuilder::add_single_flows(const Traffic& traffic, Step& step) {
  step.flow_by_flow = true;
  for (const NicFlow& nic_flow : nic_flows_) {
    const double flows = nic_flow.flow.share * paths_.flows_of_message();
    FlowClass of_class{nic_flow.bytes / flows, {}};
    path_.clear();
    paths_.wires(nic_flow.flow.gates, nic_flow.flow.path, path_);
    for (const WireId wire : path_) {
      if (is_of_host(wire.kind)) continue;  // crossed inside the nodes
      if (sites_.fabric().can_bind(wire.kind)) of_class.links.push_back({table_.wire(wire), flows});
    }
    of_class.most_rate = traffic.most_rate * nic_flow.messages / paths_.flows_of_message();
    step.flows.push_back(std::move(of_class));
  }
}

// Only where something is broken are levelled shares other than equal ones.
void StepBuilder::level_paths(const Traffic& traffic, const GroupSites& group) {
  const bool adaptive = sites_.fabric().spec().routing == Routing::kAdaptive;
  if (adaptive && paths_.by_ports())
    paths_.set_shares(levelled_shares(traffic, group, sites_.fabric(), paths_));
}

}  // namespace moebius
