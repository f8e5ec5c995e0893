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

// So many changes of a sum, each off by its rounding, before it is made anew.
constexpr int kMostMoves = 4096;

bool alike(double a, double b, double tolerance = kTie) {
  return a == b || std::abs(a - b) <= tolerance * std::min(a, b);
}

}  // namespace

bool Wires::Due::after(const Due& other) const {
  if (queue != other.queue) return queue < other.queue;
  return level != other.level ? level > other.level : node > other.node;
}

void Wires::solve_anew(Time now) {
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

double Wires::tolerance() const {
  return active_ > kExactFlows ? kRough : kTie;
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
    if (!alike(level, levels_[index], tolerance())) enter(index, std::min(level, levels_[index]));
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
  if (alike(bound, old, tolerance())) return;
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
// `from` is not above it. A level that passes some flows leaves the others more than was thought: it rises
// until it passes none. Leaves in filling_ what limits the flows that it was asked about: those held back
// here where the level rises, else those below.
double Wires::level_of(std::int32_t index, double from) {
  const Node& node = nodes_[index];
  filling_.clear();
  const bool rises = from > levels_[index];
  if (!rises && node.num_here > 0 && node.highest_below <= from) return from;
  const auto num_here = static_cast<std::size_t>(node.num_here);
  for (std::size_t i = rises ? 0 : num_here; i < (rises ? num_here : node.uses.size()); ++i) {
    const Use& use = node.uses[i];
    filling_.push_back({rises ? limit_elsewhere(use.flow, index) : rates_[use.flow], use.weight});
  }
  const double room = std::max(0.0, available(node) - (rises ? below(node) : 0));
  const double always = rises ? 0 : node.weight_here;
  double level = from < kUnlimited ? from : room / node.weight;
  while (true) {
    double passed = 0, weight = always, highest = 0;
    for (const auto& [limit, own] : filling_) {
      (limit < level ? passed : weight) += limit < level ? own * limit : own;
      if (limit < level) highest = std::max(highest, limit);
    }
    if (weight == 0) return passed < room * (1 - kTie) || filling_.empty() ? kUnlimited : highest;
    const double next = std::max(0.0, room - passed) / weight;
    if (next <= level) return level;
    level = next;
  }
}

void Wires::set_level(std::int32_t index, double level) {
  const bool rises = level > levels_[index];
  levels_[index] = level;
  if (rises) {
    raise(index, level);
  } else {
    lower(index, level);
  }
  touch(nodes_[index].lower);
}

// To the level, or to what limits them elsewhere.
void Wires::raise(std::int32_t index, double level) {
  Node& node = nodes_[index];
  for (std::int32_t i = 0; i < node.num_here; ++i)
    change_rate(node.uses[i].flow, index, std::min(level, filling_[i].first));
  for (std::int32_t i = 0; i < node.num_here;) {
    const double rate = rates_[node.uses[i].flow];
    if (rate < level) {
      move_below(node, i, rate);
    } else {
      ++i;
    }
  }
  if (node.moves > kMostMoves) count_anew(index);
}

void Wires::lower(std::int32_t index, double level) {
  Node& node = nodes_[index];
  for (std::int32_t i = 0; i < node.num_here; ++i) change_rate(node.uses[i].flow, index, level);
  if (node.highest_below < level) return;
  for (std::size_t i = node.num_here; i < node.uses.size(); ++i)
    if (rates_[node.uses[i].flow] > level) change_rate(node.uses[i].flow, index, level);
  count_anew(index);
}

// On all nodes of the flow but the one whose level brings it about.
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
    if (hop.place < node.num_here) {
      move_below(node, hop.place, rate);
    } else {
      node.rate_below += hop.weight * (rate - old);
      ++node.moves;
      if (rate < levels_[hop.node]) {
        node.highest_below = std::max(node.highest_below, rate);
      } else {
        node.rate_below -= hop.weight * rate;
        move_here(node, hop.place);
      }
    }
    touch(hop.node);
  }
}

// The sums without the rounding errors of many changes; flows below the level that have it are held back
// here.
void Wires::count_anew(std::int32_t index) {
  Node& node = nodes_[index];
  node.weight_here = node.rate_below = node.highest_below = 0;
  node.moves = 0;
  for (std::int32_t i = 0; i < node.num_here; ++i) node.weight_here += node.uses[i].weight;
  for (auto i = node.num_here; i < static_cast<std::int32_t>(node.uses.size()); ++i) {
    const double rate = rates_[node.uses[i].flow];
    if (rate >= levels_[index]) {
      move_here(node, i);
    } else {
      node.rate_below += node.uses[i].weight * rate;
      node.highest_below = std::max(node.highest_below, rate);
    }
  }
}

}  // namespace moebius
