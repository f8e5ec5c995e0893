#include "sim/network/wires.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/event_queue.h"
#include "sim/network/wire_table.h"

namespace moebius {

// The node of a queue on a wire; a wire's nodes are linked from the highest queue to the lowest.
std::int32_t Wires::node_of(std::int32_t wire, std::int32_t queue) {
  if (wires_.size() <= static_cast<std::size_t>(wire)) wires_.resize(table_.size());
  std::int32_t higher = -1, lower = wires_[wire].first;
  for (; lower >= 0 && nodes_[lower].queue > queue; lower = nodes_[lower].lower) higher = lower;
  if (lower >= 0 && nodes_[lower].queue == queue) return lower;
  const auto node = static_cast<std::int32_t>(nodes_.size());
  nodes_.emplace_back();
  nodes_[node].wire = wire;
  nodes_[node].queue = queue;
  nodes_[node].higher = higher;
  nodes_[node].lower = lower;
  levels_.push_back(kUnlimited);
  (higher < 0 ? wires_[wire].first : nodes_[higher].lower) = node;
  if (lower >= 0) nodes_[lower].higher = node;
  return node;
}

// The node's level, and what lower queues have of the wire, may have to change.
void Wires::touch(std::int32_t node) {
  for (; node >= 0; node = nodes_[node].lower) {
    if (nodes_[node].touched) continue;
    nodes_[node].touched = true;
    touched_.push_back(node);
  }
}

void Wires::swap_uses(Node& node, std::int32_t a, std::int32_t b) {
  if (a == b) return;
  std::swap(node.uses[a], node.uses[b]);
  for (const std::int32_t place : {a, b})
    flows_[node.uses[place].flow].hops[node.uses[place].hop].place = place;
}

// A flow below the level is held back here from now on; its rate is no longer among those below.
void Wires::move_here(Node& node, std::int32_t place) {
  node.weight_here += node.uses[place].weight;
  swap_uses(node, place, node.num_here++);
}

// A flow that was held back here has a lower rate from now on.
void Wires::move_below(Node& node, std::int32_t place, double rate) {
  leave_here(node, place);
  node.rate_below += node.uses[node.num_here].weight * rate;
  node.highest_below = std::max(node.highest_below, rate);
  ++node.moves;
}

// Its use is the first after those that are held back here.
void Wires::leave_here(Node& node, std::int32_t place) {
  swap_uses(node, place, --node.num_here);
  node.weight_here = node.num_here > 0 ? node.weight_here - node.uses[node.num_here].weight : 0;
}

int Wires::start(const FlowClass& plan, std::uint64_t id, Time now) {
  CHECK(!plan.links.empty(), "a flow without a wire has no rate");
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(flows_.size()));
    flows_.emplace_back();
    rates_.push_back(0);
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  Flow& flow = flows_[slot];
  flow.plan = &plan;
  flow.id = id;
  flow.bytes = plan.bytes;
  flow.rate = 0;
  flow.since = now;
  flow.most = plan.most_rate > 0 ? plan.most_rate : kUnlimited;
  flow.hops.clear();
  for (const Link& link : plan.links) flow.hops.push_back({node_of(link.wire, plan.queue), 0, link.weight});
  // As if it had always been there, on wires that have room for it; solve() finds those that have not.
  double rate = flow.most;
  for (const Hop& hop : flow.hops) rate = std::min(rate, levels_[hop.node]);
  rates_[slot] = rate;
  for (std::size_t i = 0; i < flow.hops.size(); ++i) {
    Hop& hop = flow.hops[i];
    Node& node = nodes_[hop.node];
    hop.place = static_cast<std::int32_t>(node.uses.size());
    node.uses.push_back({slot, static_cast<std::int32_t>(i), hop.weight});
    node.weight += hop.weight;
    if (rate < levels_[hop.node]) {
      node.rate_below += hop.weight * rate;
      node.highest_below = std::max(node.highest_below, rate);
    } else {
      move_here(node, hop.place);
    }
    touch(hop.node);
  }
  flow.changed = true;
  changed_flows_.push_back(slot);
  ++active_;
  return slot;
}

void Wires::set_capacity(int wire, double share) {
  CHECK(share >= 0, fmt::format("wire {} with {} of its capacity", wire, share));
  if (wires_.size() <= static_cast<std::size_t>(wire)) wires_.resize(table_.size());
  wires_[wire].share = share;
  touch(wires_[wire].first);
}

double Wires::bytes_left(int slot, Time now) const {
  const Flow& flow = flows_[slot];
  return std::max(0.0, flow.bytes - flow.rate * (now - flow.since).seconds());
}

double Wires::carried(int wire, Time now) const {
  if (wires_.size() <= static_cast<std::size_t>(wire)) return 0;
  double bytes = wires_[wire].carried;
  for (std::int32_t node = wires_[wire].first; node >= 0; node = nodes_[node].lower)
    for (const Use& use : nodes_[node].uses)
      bytes += use.weight * (flows_[use.flow].plan->bytes - bytes_left(use.flow, now));
  return bytes;
}

void Wires::apply(std::int32_t slot, Time now) {
  Flow& flow = flows_[slot];
  flow.changed = false;
  if (flow.plan == nullptr) return;  // it has begun and ended without a rate
  const double rate = rates_[slot];
  CHECK(rate < kUnlimited, "flows without a rate cross no wire that could limit them");
  if (rate == flow.rate && rate > 0) return;
  flow.bytes = bytes_left(slot, now);
  flow.since = now;
  flow.rate = rate;
  if (rate == 0 && flow.bytes > 0) return finishes_.remove(slot);  // stands still
  const double seconds = flow.bytes > 0 ? flow.bytes / rate : 0;
  changed_.push_back({later(now, seconds), flow.id, slot});
}

int Wires::pop_first() {
  const std::int32_t slot = finishes_.top().slot;
  release(slot, flows_[slot].plan->bytes);
  return slot;
}

void Wires::stop(int slot, Time now) {
  release(slot, flows_[slot].plan->bytes - bytes_left(slot, now));
}

// The flow has carried `bytes` when it leaves its wires.
void Wires::release(std::int32_t slot, double bytes) {
  finishes_.remove(slot);
  Flow& flow = flows_[slot];
  for (Hop& hop : flow.hops) {
    Node& node = nodes_[hop.node];
    if (hop.place < node.num_here) {
      leave_here(node, hop.place);
    } else {
      node.rate_below -= hop.weight * rates_[slot];
      ++node.moves;
    }
    swap_uses(node, hop.place, static_cast<std::int32_t>(node.uses.size()) - 1);
    node.uses.pop_back();
    node.weight -= hop.weight;
    if (node.uses.empty()) node.weight = node.rate_below = node.highest_below = 0;  // nor what rounding left
    wires_[node.wire].carried += hop.weight * bytes;
    touch(hop.node);
  }
  flow.plan = nullptr;
  free_.push_back(slot);
  --active_;
}

}  // namespace moebius
