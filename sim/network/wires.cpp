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
// Less than this part of a wire is what rounding left of it.
constexpr double kNothing = 1e-9;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

double ceiling(const FlowClass& flow) {
  return flow.most_rate > 0 ? flow.most_rate : kUnlimited;
}

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

double Wires::capacity(std::int32_t wire) const {
  return wires_[wire].share * table_.capacity(wire);
}

void Wires::set_capacity(int wire, double share, Time) {
  CHECK(share >= 0, fmt::format("wire {} with {} of its capacity", wire, share));
  if (wires_.size() < static_cast<std::size_t>(table_.size())) wires_.resize(table_.size());
  wires_[wire].share = share;
  touch(wire);
}

double Wires::bytes_left(const Flow& flow, Time now) {
  return std::max(0.0, flow.bytes - flow.rate * (now - flow.since).seconds());
}

double Wires::carried(int wire, Time now) const {
  if (wires_.size() <= static_cast<std::size_t>(wire)) return 0;
  double bytes = wires_[wire].carried;
  for (const std::int32_t slot : wires_[wire].flows) {
    const FlowClass& plan = *flows_[slot].plan;
    const double done = plan.bytes - bytes_left(flows_[slot], now);
    for (const Link& link : plan.links) bytes += link.wire == wire ? link.weight * done : 0;
  }
  return bytes;
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
    share_out();
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
    wires_[at].left = capacity(at);
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

// Queue after queue, the highest first; within a queue by what its flows can use at most.
void Wires::share_out() {
  const auto before = [this](std::int32_t a, std::int32_t b) {
    const FlowClass &x = *flows_[a].plan, &y = *flows_[b].plan;
    return x.queue != y.queue ? x.queue > y.queue : ceiling(x) < ceiling(y);
  };
  std::stable_sort(component_flows_.begin(), component_flows_.end(), before);
  for (auto first = component_flows_.begin(); first != component_flows_.end();) {
    const auto last = std::find_if(first, component_flows_.end(), [&](std::int32_t slot) {
      return flows_[slot].plan->queue != flows_[*first].plan->queue;
    });
    of_queue_.assign(first, last);
    fill(of_queue_);
    first = last;
  }
}

// Progressive filling: all rates rise together until a wire is full or a flow has all that it can use; such
// flows keep that rate, the others go on.
void Wires::fill(const std::vector<std::int32_t>& flows) {
  for (const std::int32_t wire : component_wires_) {
    wires_[wire].weight = 0;
    // What rounding left of a wire is nobody's.
    if (wires_[wire].left < kNothing * capacity(wire)) wires_[wire].left = 0;
  }
  for (const std::int32_t slot : flows) {
    for (const Link& link : flows_[slot].plan->links) wires_[link.wire].weight += link.weight;
  }
  std::size_t next = 0;  // of those below it, all have a rate
  for (std::size_t without_rate = flows.size(); without_rate > 0;) {
    const double share = least_share();
    while (next < flows.size() && flows_[flows[next]].new_rate >= 0) ++next;
    CHECK(next < flows.size(), fmt::format("{} flows without a rate are none", without_rate));
    const double most = ceiling(*flows_[flows[next]].plan);
    if (most <= share) {
      freeze(flows[next], most);
      --without_rate;
    } else {
      without_rate -= freeze_full_wires(share, flows_[flows[next]].plan->queue);
    }
  }
}

double Wires::least_share() const {
  double share = kUnlimited;
  for (const std::int32_t wire : component_wires_) {
    if (wires_[wire].weight > 0) share = std::min(share, wires_[wire].left / wires_[wire].weight);
  }
  return share;
}

// Of the flows in `queue` on the wires that are full at `share`; returns how many.
std::size_t Wires::freeze_full_wires(double share, int queue) {
  const double limit = share * kTie;
  std::size_t frozen = 0;
  for (const std::int32_t wire : component_wires_) {
    if (wires_[wire].weight <= 0 || wires_[wire].left > limit * wires_[wire].weight) continue;
    for (const std::int32_t slot : wires_[wire].flows) {
      if (flows_[slot].new_rate >= 0 || flows_[slot].plan->queue != queue) continue;
      freeze(slot, share);
      ++frozen;
    }
    wires_[wire].weight = 0;
    wires_[wire].left = 0;  // what rounding left of it is nobody's
  }
  return frozen;
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
  flow.bytes = bytes_left(flow, now);
  flow.since = now;
  flow.rate = flow.new_rate;
  ++flow.version;
  if (flow.rate == 0 && flow.bytes > 0) return;  // stands still
  const double seconds = flow.bytes > 0 ? flow.bytes / flow.rate : 0;
  events_.push({later(now, seconds), flow.id, slot, flow.version});
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
    wires_[link.wire].carried += link.weight * flow.plan->bytes;
    touch(link.wire);
  }
  flow.plan = nullptr;
  free_.push_back(slot);
  --active_;
  return slot;
}

}  // namespace moebius
