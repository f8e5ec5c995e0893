// Levels set anew, from the lowest up. See wires.h.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/network/wire_table.h"
#include "sim/network/wires.h"

namespace moebius {
namespace {

// Levels this close are one: symmetric flows differ only by the rounding of their sums.
constexpr double kTie = 1e-12;
// Less than this part of a wire is what rounding left of it.
constexpr double kNothing = 1e-9;

bool alike(double a, double b) {
  return a == b || std::abs(a - b) <= kTie * std::min(a, b);
}

}  // namespace

bool Wires::Due::after(const Due& other) const {
  if (queue != other.queue) return queue < other.queue;
  return level != other.level ? level > other.level : node > other.node;
}

void Wires::solve(Time now) {
  if (touched_.empty()) return;
  settled_ = -1;
  enter_touched();
  while (!due_.empty()) settle_next();
  changed_.clear();
  for (const std::int32_t flow : changed_flows_) apply(flow, now);
  shared_ += static_cast<std::int64_t>(changed_.size());
  changed_flows_.clear();
  finishes_.set(changed_);
}

// What the flows below the level take, without what rounding left of it when they were none.
double Wires::below(const Node& node) {
  return node.num_here == static_cast<std::int32_t>(node.uses.size()) ? 0 : std::max(0.0, node.rate_below);
}

// What the higher queues leave of the wire.
double Wires::available(const Node& node) const {
  const double capacity = wires_[node.wire].share * table_.capacity(node.wire);
  double left = capacity;
  for (std::int32_t higher = node.higher; higher >= 0; higher = nodes_[higher].higher) {
    const Node& first = nodes_[higher];
    left -= below(first);
    if (first.num_here > 0) left -= first.weight_here * levels_[higher];
  }
  return left < kNothing * capacity ? 0 : left;
}

// The level that fills the wire if no flow that is below the level now is held back by it: the level itself
// where it rises or stays (then others may limit its flows), a lower bound where it falls.
double Wires::estimate(std::int32_t index) const {
  const Node& node = nodes_[index];
  const double room = available(node);
  if (node.num_here > 0) return std::max(0.0, room - below(node)) / node.weight_here;
  if (below(node) < room * (1 - kTie) || node.uses.empty()) return kUnlimited;
  return room / node.weight;
}

void Wires::enter(std::int32_t index, double level) {
  Node& node = nodes_[index];
  if (node.due >= 0 && node.due <= level) return;
  node.due = level;
  due_.push_back({node.queue, index, level});
  std::push_heap(due_.begin(), due_.end(), [](const Due& a, const Due& b) { return a.after(b); });
}

void Wires::enter_touched() {
  for (const std::int32_t index : touched_) {
    nodes_[index].touched = false;
    const double level = estimate(index);
    if (!alike(level, levels_[index])) enter(index, std::min(level, levels_[index]));
  }
  touched_.clear();
}

// Takes the level that is due first and sets it, unless it turns out that others are due before.
void Wires::settle_next() {
  const Due first = due_.front();
  std::pop_heap(due_.begin(), due_.end(), [](const Due& a, const Due& b) { return a.after(b); });
  due_.pop_back();
  Node& node = nodes_[first.node];
  if (node.due != first.level) return;  // overtaken
  node.due = -1;
  const double old = levels_[first.node];
  const double bound = estimate(first.node);
  if (alike(bound, old)) return;
  const auto others_first = [&](double level) {
    return !due_.empty() && Due{first.queue, first.node, level}.after(due_.front());
  };
  if (others_first(std::min(bound, old))) return enter(first.node, std::min(bound, old));
  double level = level_of(first.node, bound);
  if (others_first(std::min(level, old))) return enter(first.node, std::min(level, old));
  if (alike(level, settled_)) level = settled_;
  settled_ = level;
  if (level != old) set_level(first.node, level);
  enter_touched();
}

// The lowest level on the flow's way but for the node's.
double Wires::limit_elsewhere(std::int32_t slot, std::int32_t node) const {
  const Flow& flow = flows_[slot];
  double limit = flow.most;
  for (const Hop& hop : flow.hops)
    if (hop.node != node) limit = std::min(limit, levels_[hop.node]);
  return limit;
}

// The level at which the node's flows fill what the wire has for them, each with what limits it elsewhere;
// `from` is not above it. A level that leaves some flows below it fills more than was thought: it rises until
// none is left that it passes.
double Wires::level_of(std::int32_t index, double from) {
  const Node& node = nodes_[index];
  const double old = levels_[index];
  filling_.clear();
  for (const Use& use : node.uses) {
    const double rate = rates_[use.flow];
    const double limit = rate < old ? rate : from > old ? limit_elsewhere(use.flow, index) : kUnlimited;
    filling_.push_back({limit, use.weight});
  }
  const double room = available(node);
  double level = from < kUnlimited ? from : room / node.weight;
  while (true) {
    double below = 0, weight = 0, highest = 0;
    for (const auto& [limit, own] : filling_) {
      (limit < level ? below : weight) += limit < level ? own * limit : own;
      if (limit < level) highest = std::max(highest, limit);
    }
    if (weight == 0) return below < room * (1 - kTie) || filling_.empty() ? kUnlimited : highest;
    const double next = std::max(0.0, room - below) / weight;
    if (next <= level) return level;
    level = next;
  }
}

void Wires::set_level(std::int32_t index, double level) {
  const double old = levels_[index];
  levels_[index] = level;
  ++levels_set_;
  for (const Use& use : nodes_[index].uses) {
    const double rate = rates_[use.flow];
    if (rate > level) {
      change_rate(use.flow, index, level);
    } else if (rate == old) {
      change_rate(use.flow, index, std::min(level, limit_elsewhere(use.flow, index)));
    }
  }
  count_anew(index);
  for (std::int32_t lower = nodes_[index].lower; lower >= 0; lower = nodes_[lower].lower) touch(lower);
}

// On all nodes but the one whose flows are counted anew afterwards.
void Wires::change_rate(std::int32_t slot, std::int32_t of_node, double rate) {
  const double old = rates_[slot];
  if (rate == old) return;
  rates_[slot] = rate;
  Flow& flow = flows_[slot];
  if (!flow.changed) changed_flows_.push_back(slot);
  flow.changed = true;
  for (const Hop& hop : flow.hops) {
    if (hop.node == of_node) continue;
    Node& node = nodes_[hop.node];
    count(node, hop.weight, old, levels_[hop.node], -1);
    count(node, hop.weight, rate, levels_[hop.node], 1);
    touch(hop.node);
  }
}

void Wires::count_anew(std::int32_t index) {
  Node& node = nodes_[index];
  node.rate_below = node.weight_here = 0;
  node.num_here = 0;
  for (const Use& use : node.uses) count(node, use.weight, rates_[use.flow], levels_[index], 1);
}

}  // namespace moebius
