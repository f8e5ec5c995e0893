#include "sim/faults/moving_step.h"

#include <algorithm>

#include "hw/error.h"
#include "sim/traffic/path_balance.h"

namespace moebius {
namespace {

bool leaves_node(WireKind kind) {
  return kind != WireKind::kScaleUpOut && kind != WireKind::kScaleUpIn && kind != WireKind::kScaleUpPair &&
         kind != WireKind::kBoardOut && kind != WireKind::kBoardIn;
}

bool same_gates(const StepPart& a, const StepPart& b) {
  return a.from == b.from && a.to == b.to && a.way.gates.sender == b.way.gates.sender &&
         a.way.gates.receiver == b.way.gates.receiver;
}

double most_of(const std::map<int, double>& left) {
  double most = 0;
  for (const auto& [tier, bytes] : left) most = std::max(most, bytes);
  return most;
}

std::vector<std::int32_t> wires_of(const FlowClass& flow) {
  std::vector<std::int32_t> wires;
  for (const Link& link : flow.links) wires.push_back(link.wire);
  return wires;
}

}  // namespace

double MovingStep::Part::left() const {
  double most = 0;
  for (const Carry& carry : carries) most = std::max(most, carry.bytes);
  return most;
}

MovingStep::MovingStep(const Step& step, const std::vector<double>& left, FlowPaths& paths, WireTable& table)
    : paths_(paths), table_(table) {
  const StepParts& parts = *step.parts;
  shape_ = {parts.lockstep, parts.single, parts.most_rate, {}};
  queue_ = step.flows.empty() ? std::uint8_t{0} : step.flows.front().queue;  // all have the same
  step_.latency = step.latency;
  step_.flow_by_flow = step.flow_by_flow;
  for (const StepPart& part : parts.parts) parts_.push_back(whole(part));
  rebuild([](std::int32_t) { return false; });
  take_left(step, left);
}

std::vector<WireId> MovingStep::way(const StepPart& part) const {
  std::vector<WireId> way;
  paths_.wires(part.from, part.to, part.way, way);
  return way;
}

// Those that flows load: see StepBuilder.
std::vector<std::int32_t> MovingStep::wires_of(const StepPart& part) const {
  if (part.from == part.to) return {table_.local_copy(part.from)};
  std::vector<std::int32_t> wires;
  for (const WireId wire : way(part)) {
    const bool first = wires.empty();  // the sender's own
    if (first || paths_.fabric().can_bind(wire.kind)) wires.push_back(table_.wire(wire));
  }
  return wires;
}

std::vector<std::int32_t> MovingStep::crossing_wires(const StepPart& part) const {
  std::vector<std::int32_t> wires;
  for (const WireId wire : way(part))
    if (leaves_node(wire.kind) && paths_.fabric().can_bind(wire.kind)) wires.push_back(table_.wire(wire));
  return wires;
}

MovingStep::Part MovingStep::whole(const StepPart& part) const {
  Part result;
  result.part = part;
  if (shape_.lockstep) {
    result.carries = {{kPipeline, part.bytes()}};
    return result;
  }
  bool crosses = false;
  for (const std::int32_t wire : wires_of(part)) {
    const int kind = table_.kind(wire);
    const bool in_flow = shape_.single && kind < kNumWireKinds && leaves_node(static_cast<WireKind>(kind));
    if (!in_flow || !crosses) result.carries.push_back({in_flow ? kCrossing : wire, part.bytes()});
    crosses = crosses || in_flow;
  }
  return result;
}

MovingStep::Tiers MovingStep::tiers_of(const Part& part) const {
  Tiers left;
  for (const Part::Carry& carry : part.carries) {
    double& most = left[tier_of(carry.wire)];
    most = std::max(most, carry.bytes);
  }
  return left;
}

std::vector<MovingStep::Part> MovingStep::spread(const StepPart& part, const Tiers& left,
                                                 const std::vector<FlowPath>& ways) const {
  const double most = most_of(left);
  std::vector<Part> parts;
  for (const FlowPath& way : ways) {
    StepPart by = part;
    by.way = way;
    by.way.share *= part.way.share;
    Part new_part = whole(by);
    for (Part::Carry& carry : new_part.carries) {
      const auto known = left.find(tier_of(carry.wire));
      carry.bytes = way.share * (known == left.end() ? most : known->second);
    }
    parts.push_back(std::move(new_part));
  }
  return parts;
}

std::vector<MovingStep::Part> MovingStep::moved(const Part& part, const std::vector<FlowPath>& ways) const {
  return spread(part.part, tiers_of(part), ways);
}

bool MovingStep::between_leaves(const Part& part) const {
  const auto [sender, receiver] = part.part.way.gates;
  return !part.stalled && sender >= 0 && paths_.fabric().leaf_of(sender) != paths_.fabric().leaf_of(receiver);
}

// What a message has left over one pair of gates, of parts that stand side by side; the others stay.
std::vector<MovingStep::Message> MovingStep::take_between_leaves() {
  std::vector<Message> messages;
  std::vector<Part> others;
  for (Part& part : parts_) {
    if (!between_leaves(part)) {
      others.push_back(std::move(part));
    } else if (messages.empty() || !same_gates(messages.back().part, part.part)) {
      messages.push_back({part.part, tiers_of(part)});
    } else {
      messages.back().part.way.share += part.part.way.share;
      for (const auto& [tier, bytes] : tiers_of(part)) messages.back().left[tier] += bytes;
    }
  }
  parts_ = std::move(others);
  return messages;
}

void MovingStep::level() {
  const Fabric& fabric = paths_.fabric();
  const std::vector<Message> messages = take_between_leaves();
  std::vector<GateLoad> loads;
  for (const Message& message : messages) {
    const double bytes = most_of(message.left);
    if (bytes > 0) loads.push_back({message.part.way.gates, bytes});
  }
  const auto shares = levelled_shares(loads, fabric, paths_);
  for (const Message& message : messages) {
    const FlowPath& usual = message.part.way;
    const Fabric::Gates by = usual.gates;
    const auto levelled = shares.find({fabric.leaf_of(by.sender), fabric.leaf_of(by.receiver)});
    std::vector<FlowPath> ways;
    if (levelled == shares.end()) {  // nothing of it is left
      ways.push_back({by, usual.path, 1, usual.change});
    } else {
      for (const auto& [path, share] : levelled->second) ways.push_back({by, path, share, usual.change});
    }
    for (Part& part : spread(message.part, message.left, ways)) parts_.push_back(std::move(part));
  }
}

std::int32_t MovingStep::bundle(std::int32_t& known) {
  if (known < 0) {
    known = static_cast<std::int32_t>(bundles_.size());
    bundles_.emplace_back();
  }
  return known;
}

std::int32_t MovingStep::load_wire(const StepPart& part, std::int32_t wire, double bytes) {
  const std::int32_t index = bundle(by_wire_.try_emplace(wire, -1).first->second);
  Bundle& of = bundles_[index];
  of.bytes += bytes;
  of.flows += part.way.share;
  of.links = {{wire, 1}};
  return index;
}

// As many flows as the message with the most of them has here: all messages between two NICs share them.
std::int32_t MovingStep::load_crossing(const StepPart& part, double bytes) {
  const Fabric& fabric = paths_.fabric();
  const std::array<std::int32_t, 3> key{fabric.nic_of(part.way.gates.sender),
                                        fabric.nic_of(part.way.gates.receiver), part.way.path};
  const std::int32_t index = bundle(by_nics_.try_emplace(key, -1).first->second);
  Bundle& of = bundles_[index];
  if (of.links.empty())
    for (const std::int32_t wire : crossing_wires(part)) of.links.push_back({wire, 1});
  if (of.from != part.from || of.to != part.to) {
    of.of_message = 0;
    ++of.messages;
  }
  of.from = part.from;
  of.to = part.to;
  of.of_message += part.way.share * paths_.flows_of_message();
  of.flows = std::max(of.flows, of.of_message);
  of.bytes += bytes;
  return index;
}

std::int32_t MovingStep::load_pipeline(const StepPart& part, double bytes) {
  const std::int32_t index = bundle(by_size_.try_emplace(part.size, -1).first->second);
  Bundle& of = bundles_[index];
  of.flows = 1;
  of.bytes = bytes / part.way.share;  // alike for all of one size
  for (const std::int32_t wire : wires_of(part)) {
    const auto [at, is_new] = link_of_.try_emplace({index, wire}, of.links.size());
    if (is_new) of.links.push_back({wire, 0});
    of.links[at->second].weight += part.way.share;
  }
  return index;
}

// -1: none.
std::int32_t MovingStep::broken_wire(const StepPart& part,
                                     const std::function<bool(std::int32_t)>& broken) const {
  const std::vector<std::int32_t> wires = wires_of(part);
  const auto found = std::find_if(wires.begin(), wires.end(), broken);
  return found == wires.end() ? -1 : *found;
}

bool MovingStep::rebuild(const std::function<bool(std::int32_t)>& broken) {
  bundles_.clear();
  by_wire_.clear();
  by_nics_.clear();
  by_size_.clear();
  link_of_.clear();
  std::int32_t waits_on = -1;  // for who has nothing left there
  bool stands = false;
  for (Part& part : parts_) {
    for (Part::Carry& carry : part.carries) {
      const bool held = part.stalled && carry.wire >= 0 && !broken(carry.wire);
      carry.flow = held                      ? -1
                   : carry.wire == kPipeline ? load_pipeline(part.part, carry.bytes)
                   : carry.wire == kCrossing ? load_crossing(part.part, carry.bytes)
                                             : load_wire(part.part, carry.wire, carry.bytes);
      if (!part.stalled || carry.bytes <= 0) continue;
      stands = stands || !held;
      if (held && waits_on < 0) waits_on = broken_wire(part.part, broken);
    }
  }
  for (const auto& [size, links] : besides_) {
    Bundle& of = bundles_[by_size_.at(size)];
    of.links.insert(of.links.end(), links.begin(), links.end());
  }
  before_ = std::exchange(step_.flows, {});
  bool any = false;
  for (Bundle& of : bundles_) {
    for (Link& link : of.links) link.weight *= of.flows;
    any = any || of.bytes > 0;
    const double most = of.messages > 0 ? shape_.most_rate * of.messages / of.flows : shape_.most_rate;
    step_.flows.push_back({of.bytes / of.flows, std::move(of.links), most, queue_});
  }
  for (const FlowClass& flow : others_) {
    any = any || flow.bytes > 0;
    step_.flows.push_back(flow);
  }
  if (waits_on >= 0 && !stands) {
    any = true;
    step_.flows.push_back({1, {{waits_on, 1}}, 0, queue_});
  }
  return any;
}

void MovingStep::settle(const std::vector<double>& left) {
  const std::size_t told = std::min(left.size(), bundles_.size() + others_.size());
  for (std::size_t i = bundles_.size(); i < told; ++i) others_[i - bundles_.size()].bytes *= left[i];
  for (Part& part : parts_) {
    for (Part::Carry& carry : part.carries)
      if (carry.flow >= 0) carry.bytes *= left[carry.flow];
  }
}

void MovingStep::take_left(const Step& original, const std::vector<double>& left) {
  std::vector<double> mine(step_.flows.size(), -1);
  if (shape_.lockstep) {
    take_pipelines(original, left, mine);
  } else {
    take_flows(original, left, mine);
  }
  for (const double share : mine) CHECK(share >= 0, "a flow that the step does not have");
  settle(mine);
}

// Pipelines of the original are known by their size; they also wait for what no part tells of.
void MovingStep::take_pipelines(const Step& original, const std::vector<double>& left,
                                std::vector<double>& mine) {
  for (std::size_t i = 0; i < left.size(); ++i) {
    const FlowClass& flow = original.flows[i];
    const auto known = by_size_.find(flow.bytes);
    if (known == by_size_.end()) {
      keep(flow, flow.bytes * left[i]);
      continue;
    }
    mine[known->second] = left[i];
    for (const Link& link : flow.links)
      if (!link_of_.contains({known->second, link.wire})) besides_[flow.bytes].push_back(link);
  }
}

// Other flows of the original are known by their wires. What parts do not tell of (messages posted, edges to
// switches that reduce) goes on as it was.
void MovingStep::take_flows(const Step& original, const std::vector<double>& left,
                            std::vector<double>& mine) {
  std::map<std::vector<std::int32_t>, std::size_t> of_wires;
  for (std::size_t i = 0; i < mine.size(); ++i) of_wires[moebius::wires_of(step_.flows[i])] = i;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const FlowClass& flow = original.flows[i];
    const auto known = of_wires.find(moebius::wires_of(flow));
    if (known == of_wires.end()) {
      keep(flow, flow.bytes * left[i]);
      continue;
    }
    mine[known->second] = left[i];
    const FlowClass& part = step_.flows[known->second];
    const double weight = flow.links.front().weight;
    const double more = flow.bytes - part.bytes * part.links.front().weight / weight;
    if (more > 1e-9 * flow.bytes) keep(flow, more * left[i]);
  }
}

void MovingStep::keep(const FlowClass& flow, double bytes) {
  others_.push_back(flow);
  others_.back().bytes = bytes;
}

}  // namespace moebius
