#include "sim/network/wires.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/network/wire_table.h"

namespace moebius {
namespace {

// Shares this close are one bottleneck: symmetric flows differ only by the rounding of their weights' sums.
constexpr double kTie = 1 + 1e-12;

}  // namespace

int Wires::start(const FlowClass& plan, std::uint64_t id, Time now) {
  CHECK(!plan.links.empty(), "a flow without a wire has no rate");
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  Flow& flow = flows_[slot];
  flow.plan = &plan;
  flow.id = id;
  flow.bytes = plan.bytes;
  flow.rate = 0;
  flow.since = now;
  if (wires_.size() < static_cast<std::size_t>(table_.size())) wires_.resize(table_.size());
  for (const Link& link : plan.links) {
    wires_[link.wire].flows.push_back(slot);
    touch(link.wire);
  }
  ++active_;
  return slot;
}

void Wires::touch(std::int32_t wire) {
  if (wires_[wire].dirty) return;
  wires_[wire].dirty = true;
  dirty_.push_back(wire);
}

void Wires::solve(Time now) {
  if (dirty_.empty()) return;
  ++solve_number_;
  for (const std::int32_t wire : dirty_) {
    wires_[wire].dirty = false;
    if (wires_[wire].seen == solve_number_) continue;
    collect_component(wire);
    fill();
    for (const std::int32_t flow : component_flows_) apply(flow, now);
  }
  dirty_.clear();
}

// Every wire and flow that is reached from `wire` by going from wires to their flows and from flows to their
// wires.
void Wires::collect_component(std::int32_t wire) {
  component_wires_.assign(1, wire);
  component_flows_.clear();
  wires_[wire].seen = solve_number_;
  for (std::size_t next = 0; next < component_wires_.size(); ++next) {
    const std::int32_t at = component_wires_[next];
    wires_[at].left = table_.capacity(at);
    wires_[at].weight = 0;
    for (const std::int32_t slot : wires_[at].flows) {
      if (flows_[slot].seen == solve_number_) continue;
      flows_[slot].seen = solve_number_;
      flows_[slot].new_rate = -1;
      component_flows_.push_back(slot);
      for (const Link& link : flows_[slot].plan->links) {
        if (wires_[link.wire].seen == solve_number_) continue;
        wires_[link.wire].seen = solve_number_;
        component_wires_.push_back(link.wire);
      }
    }
  }
}

// Progressive filling: all rates rise together until a wire is full; its flows keep that rate, the others go
// on.
void Wires::fill() {
  for (const std::int32_t slot : component_flows_) {
    for (const Link& link : flows_[slot].plan->links) wires_[link.wire].weight += link.weight;
  }
  std::size_t without_rate = component_flows_.size();
  while (without_rate > 0) {
    double share = std::numeric_limits<double>::infinity();
    for (const std::int32_t wire : component_wires_) {
      if (wires_[wire].weight > 0) share = std::min(share, wires_[wire].left / wires_[wire].weight);
    }
    CHECK(share < std::numeric_limits<double>::infinity(),
          fmt::format("{} flows without a wire", without_rate));
    const double limit = share * kTie;
    for (const std::int32_t wire : component_wires_) {
      if (wires_[wire].weight <= 0 || wires_[wire].left > limit * wires_[wire].weight) continue;
      for (const std::int32_t slot : wires_[wire].flows) {
        if (flows_[slot].new_rate >= 0) continue;
        freeze(slot, share);
        --without_rate;
      }
      wires_[wire].weight = 0;  // full; what rounding left of it is nobody's
    }
  }
}

void Wires::freeze(std::int32_t slot, double rate) {
  flows_[slot].new_rate = rate;
  for (const Link& link : flows_[slot].plan->links) {
    Wire& wire = wires_[link.wire];
    wire.left = std::max(0.0, wire.left - link.weight * rate);
    wire.weight -= link.weight;
    // The sum of the weights is left with a rounding error where the last flow went.
    if (wire.weight < 1e-9 * link.weight) wire.weight = 0;
  }
}

void Wires::apply(std::int32_t slot, Time now) {
  Flow& flow = flows_[slot];
  if (flow.new_rate == flow.rate) return;
  flow.bytes = std::max(0.0, flow.bytes - flow.rate * (now - flow.since).seconds());
  flow.since = now;
  flow.rate = flow.new_rate;
  ++flow.version;
  events_.push({later(now, flow.bytes / flow.rate), flow.id, slot, flow.version});
}

Time Wires::next_event() {
  return events_.next([&](const Event& event) { return flows_[event.slot].version == event.version; });
}

int Wires::pop_finished(Time now) {
  if (next_event() > now) return -1;
  const std::int32_t slot = events_.top().slot;
  events_.pop();
  Flow& flow = flows_[slot];
  ++flow.version;
  for (const Link& link : flow.plan->links) {
    std::vector<std::int32_t>& users = wires_[link.wire].flows;
    *std::find(users.begin(), users.end(), slot) = users.back();
    users.pop_back();
    touch(link.wire);
  }
  flow.plan = nullptr;
  free_.push_back(slot);
  --active_;
  return slot;
}

}  // namespace moebius
