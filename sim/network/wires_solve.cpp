// Progressive filling from the level of a change on. See wires.h.
#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/network/wire_table.h"
#include "sim/network/wires.h"

namespace moebius {
namespace {

// Shares this close are one bottleneck: symmetric flows differ only by the rounding of their weights' sums.
constexpr double kTie = 1 + 1e-12;
// Less than this part of a wire is what rounding left of it.
constexpr double kNothing = 1e-9;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

double ceiling(const FlowClass& flow) {
  return flow.most_rate > 0 ? flow.most_rate : kUnlimited;
}

}  // namespace

void Wires::solve_anew(Time now) {
  ++solve_number_;
  for (const std::int32_t index : dirty_) {
    Wire& wire = wires_[index];
    if (wire.resized) resize(index);
    if (!wire.gained) continue;
    const Level full = fills_at(index);
    if (full.before(wire.from)) wire.from = full;
  }
  // A component that several changes reach starts from the lowest of them.
  std::sort(dirty_.begin(), dirty_.end(), [this](std::int32_t a, std::int32_t b) {
    const Level &x = wires_[a].from, &y = wires_[b].from;
    return x.before(y) || (!y.before(x) && a < b);
  });
  changed_.clear();
  for (const std::int32_t index : dirty_) {
    Wire& wire = wires_[index];
    const Level from = wire.from;
    wire.from = kNever;
    wire.dirty = wire.gained = wire.resized = false;
    if (wire.seen == solve_number_ || from.queue < 0) continue;
    collect_component(index, from);
    share_out();
    for (const std::int32_t flow : component_flows_) apply(flow, now);
  }
  dirty_.clear();
  finishes_.set(changed_);
}

// What each use leaves, after the capacity has changed.
void Wires::resize(std::int32_t index) {
  Wire& wire = wires_[index];
  wire.left = capacity(index);
  for (Use& use : wire.uses) {
    const Flow& flow = flows_[use.flow];
    use.left = wire.left;
    wire.left = std::max(0.0, wire.left - flow.hops[use.hop].weight * std::max(0.0, flow.rate));
  }
}

// The level at which the wire is full, when all flows below have the rates that they have now and those
// without one take all that they can; kNever when it does not fill.
Wires::Level Wires::fills_at(std::int32_t index) const {
  const Wire& wire = wires_[index];
  double left = capacity(index);
  std::size_t next = 0;
  for (int queue = 255; queue >= 0;) {
    double weight = 0;
    int without_rate = 0, lower = -1;
    for (const Use& use : wire.uses) {
      const Flow& flow = flows_[use.flow];
      if (flow.queue < queue) lower = std::max<int>(lower, flow.queue);
      if (flow.queue != queue) continue;
      weight += flow.hops[use.hop].weight;
      without_rate += flow.rate < 0;
    }
    for (; next < wire.uses.size(); ++next) {
      const Flow& flow = flows_[wire.uses[next].flow];
      if (flow.rate < 0 || flow.queue != queue) break;
      if (!level_of(flow).before(wire.from)) return wire.from;  // from here on their order is not known
      if (flow.rate * weight >= left) return {queue, left / weight * (1 - kNothing)};
      const double own = flow.hops[wire.uses[next].hop].weight;
      left -= own * flow.rate;
      weight -= own;
    }
    if (without_rate > 0) return {queue, std::max(0.0, left) / weight * (1 - kNothing)};
    queue = lower;
  }
  return kNever;
}

bool Wires::is_above(const Use& use, const Level& level) const {
  const Flow& flow = flows_[use.flow];
  return flow.rate < 0 || !Level{flow.queue, flow.rate}.before(level);
}

// Takes their rates from the wire's uses at or above the level.
void Wires::loosen(std::int32_t index, const Level& from) {
  Wire& wire = wires_[index];
  wire.seen = solve_number_;
  wire.weight = 0;
  wire.fixed = static_cast<std::int32_t>(wire.uses.size());
  while (wire.fixed > 0 && is_above(wire.uses[wire.fixed - 1], from)) --wire.fixed;
  if (wire.fixed < static_cast<std::int32_t>(wire.uses.size())) wire.left = wire.uses[wire.fixed].left;
  component_wires_.push_back(index);
}

// Every wire and every flow above the level that is reached from `wire` by going from wires to such flows and
// from flows to their wires.
void Wires::collect_component(std::int32_t wire, Level from) {
  component_wires_.clear();
  component_flows_.clear();
  loosen(wire, from);
  for (std::size_t next = 0; next < component_wires_.size(); ++next) {
    const std::vector<Use>& uses = wires_[component_wires_[next]].uses;
    for (std::size_t i = wires_[component_wires_[next]].fixed; i < uses.size(); ++i) {
      Flow& flow = flows_[uses[i].flow];
      if (flow.seen == solve_number_) continue;
      flow.seen = solve_number_;
      flow.new_rate = -1;
      component_flows_.push_back(uses[i].flow);
      for (const Hop& hop : flow.hops) {
        if (wires_[hop.wire].seen != solve_number_) loosen(hop.wire, from);
        wires_[hop.wire].weight += hop.weight;
      }
    }
  }
  shared_ += static_cast<std::int64_t>(component_flows_.size());
}

// Queue after queue, the highest first; within a queue by what its flows can use at most.
void Wires::share_out() {
  const auto before = [this](std::int32_t a, std::int32_t b) {
    const FlowClass &x = *flows_[a].plan, &y = *flows_[b].plan;
    return x.queue != y.queue ? x.queue > y.queue : ceiling(x) < ceiling(y);
  };
  if (!std::is_sorted(component_flows_.begin(), component_flows_.end(), before))
    std::stable_sort(component_flows_.begin(), component_flows_.end(), before);
  if (flows_[component_flows_.front()].queue == flows_[component_flows_.back()].queue)
    return fill(component_flows_);
  for (auto first = component_flows_.begin(); first != component_flows_.end();) {
    const auto last = std::find_if(first, component_flows_.end(), [&](std::int32_t slot) {
      return flows_[slot].queue != flows_[*first].queue;
    });
    of_queue_.assign(first, last);
    weigh(of_queue_);
    fill(of_queue_);
    first = last;
  }
}

// Sets the weights of the component's wires to those of the flows.
void Wires::weigh(const std::vector<std::int32_t>& flows) {
  for (const std::int32_t wire : component_wires_) wires_[wire].weight = 0;
  for (const std::int32_t slot : flows) {
    for (const Hop& hop : flows_[slot].hops) wires_[hop.wire].weight += hop.weight;
  }
}

// Progressive filling: all rates rise together until a wire is full or a flow has all that it can use; such
// flows keep that rate, the others go on. `flows` are of one queue, by what they can use at most.
void Wires::fill(const std::vector<std::int32_t>& flows) {
  filling_.clear();
  for (const std::int32_t index : component_wires_) {
    Wire& wire = wires_[index];
    if (wire.left < kNothing * capacity(index)) wire.left = 0;
    if (wire.weight > 0) filling_.push_back({wire.left / wire.weight, index});
  }
  std::make_heap(filling_.begin(), filling_.end(), std::greater<>());
  const int queue = flows_[flows.front()].queue;
  std::size_t next = 0;  // all before it have a rate
  double share = -1;
  for (std::size_t without_rate = flows.size(); without_rate > 0;) {
    const std::int32_t wire = next_full_wire();
    const double now = wires_[wire].left / wires_[wire].weight;
    while (flows_[flows[next]].new_rate >= 0) ++next;
    const double most = ceiling(*flows_[flows[next]].plan);
    if (most <= now) {
      freeze(flows[next], most);
      --without_rate;
      continue;
    }
    if (share < 0 || now > share * kTie) share = now;
    without_rate -= freeze_users(wire, share, queue);
  }
}

// The wire that is full first. Shares only grow while others are served: one that has grown since it was
// entered goes back to where it belongs now.
std::int32_t Wires::next_full_wire() {
  while (true) {
    CHECK(!filling_.empty(), "flows without a rate cross no wire that could limit them");
    const auto [share, index] = filling_.front();
    const Wire& wire = wires_[index];
    const double now = wire.weight > 0 ? wire.left / wire.weight : kUnlimited;
    if (now <= share * kTie) return index;
    std::pop_heap(filling_.begin(), filling_.end(), std::greater<>());
    filling_.back().first = now;
    if (wire.weight > 0) {
      std::push_heap(filling_.begin(), filling_.end(), std::greater<>());
    } else {
      filling_.pop_back();
    }
  }
}

// Of the flows in `queue` on a wire that is full; returns how many.
std::size_t Wires::freeze_users(std::int32_t index, double rate, int queue) {
  Wire& wire = wires_[index];
  std::size_t frozen = 0;
  for (std::size_t i = wire.fixed; i < wire.uses.size(); ++i) {
    if (flows_[wire.uses[i].flow].queue != queue) continue;
    freeze(wire.uses[i].flow, rate);
    ++frozen;
  }
  wire.weight = 0;
  wire.left = 0;  // what rounding left of it is nobody's
  return frozen;
}

// The flow moves up to the uses with a rate on each of its wires.
void Wires::freeze(std::int32_t slot, double rate) {
  Flow& flow = flows_[slot];
  flow.new_rate = rate;
  std::int32_t number = 0;
  for (Hop& hop : flow.hops) {
    Wire& wire = wires_[hop.wire];
    Use& first = wire.uses[wire.fixed];
    if (hop.place != wire.fixed) {
      Use& own = wire.uses[hop.place];
      flows_[first.flow].hops[first.hop].place = hop.place;
      own.flow = first.flow;
      own.hop = first.hop;
      hop.place = wire.fixed;
    }
    first = {slot, number++, wire.left};
    ++wire.fixed;
    wire.left = std::max(0.0, wire.left - hop.weight * rate);
    wire.weight -= hop.weight;
    // The sum of the weights is left with a rounding error where the last flow went.
    if (wire.weight < 1e-9 * hop.weight) wire.weight = 0;
  }
}

}  // namespace moebius
