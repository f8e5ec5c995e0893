#include "sim/network/wires.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/event_queue.h"
#include "sim/network/wire_table.h"

namespace moebius {
namespace {

// Levels this close may have changed places by rounding: sharing starts again a little earlier than it must.
constexpr double kCloseBelow = 1 - 1e-9;

}  // namespace

void Wires::make_wires() {
  for (auto wire = static_cast<std::int32_t>(wires_.size()); wire < table_.size(); ++wire) {
    wires_.emplace_back();
    wires_.back().left = capacity(wire);
  }
}

double Wires::capacity(std::int32_t wire) const {
  return wires_[wire].share * table_.capacity(wire);
}

Wires::Level Wires::level_of(const Flow& flow) {
  return {flow.queue, flow.rate * kCloseBelow};
}

void Wires::touch(std::int32_t wire, Level from) {
  Wire& touched = wires_[wire];
  if (from.before(touched.from)) touched.from = from;
  if (touched.dirty) return;
  touched.dirty = true;
  dirty_.push_back(wire);
}

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
  flow.rate = -1;
  flow.since = now;
  flow.queue = plan.queue;
  flow.hops.clear();
  make_wires();
  const Level from = plan.most_rate > 0 ? Level{plan.queue, plan.most_rate * kCloseBelow} : kNever;
  for (const Link& link : plan.links) {
    Wire& wire = wires_[link.wire];
    wire.uses.push_back({slot, static_cast<std::int32_t>(flow.hops.size()), wire.left});
    wire.gained = true;
    flow.hops.push_back({link.wire, static_cast<std::int32_t>(wire.uses.size()) - 1, link.weight});
    touch(link.wire, from);
  }
  ++active_;
  return slot;
}

void Wires::set_capacity(int wire, double share) {
  CHECK(share >= 0, fmt::format("wire {} with {} of its capacity", wire, share));
  make_wires();
  // Of the two capacities the smaller one is full first.
  if (share > wires_[wire].share) touch(wire, fills_at(wire));
  wires_[wire].share = share;
  wires_[wire].gained = wires_[wire].resized = true;
  touch(wire, kNever);
}

double Wires::bytes_left(const Flow& flow, Time now) {
  return std::max(0.0, flow.bytes - std::max(0.0, flow.rate) * (now - flow.since).seconds());
}

double Wires::carried(int wire, Time now) const {
  if (wires_.size() <= static_cast<std::size_t>(wire)) return 0;
  double bytes = wires_[wire].carried;
  for (const Use& use : wires_[wire].uses) {
    const Flow& flow = flows_[use.flow];
    bytes += flow.hops[use.hop].weight * (flow.plan->bytes - bytes_left(flow, now));
  }
  return bytes;
}

void Wires::apply(std::int32_t slot, Time now) {
  Flow& flow = flows_[slot];
  if (flow.new_rate == flow.rate) return;
  flow.bytes = bytes_left(flow, now);
  flow.since = now;
  flow.rate = flow.new_rate;
  if (flow.rate == 0 && flow.bytes > 0) return finishes_.remove(slot);  // stands still
  const double seconds = flow.bytes > 0 ? flow.bytes / flow.rate : 0;
  changed_.push_back({later(now, seconds), flow.id, slot});
}

int Wires::pop_first() {
  const std::int32_t slot = finishes_.top().slot;
  release(slot, flows_[slot].plan->bytes);
  return slot;
}

void Wires::stop(int slot, Time now) {
  release(slot, flows_[slot].plan->bytes - bytes_left(flows_[slot], now));
}

// The flow has carried `bytes` when it leaves its wires.
void Wires::release(std::int32_t slot, double bytes) {
  finishes_.remove(slot);
  Flow& flow = flows_[slot];
  const Level from = flow.rate < 0 ? kNever : level_of(flow);
  for (const Hop& hop : flow.hops) {
    remove_use(hop.wire, hop.place);
    wires_[hop.wire].carried += hop.weight * bytes;
    touch(hop.wire, from);
  }
  flow.plan = nullptr;
  free_.push_back(slot);
  --active_;
}

// The last use takes the place. What the uses before the place leave stays with the place.
void Wires::remove_use(std::int32_t index, std::int32_t place) {
  Wire& wire = wires_[index];
  const Use last = wire.uses.back();
  if (place + 1 < static_cast<std::int32_t>(wire.uses.size())) {
    wire.uses[place].flow = last.flow;
    wire.uses[place].hop = last.hop;
    flows_[last.flow].hops[last.hop].place = place;
  } else {
    wire.left = last.left;
  }
  wire.uses.pop_back();
}

}  // namespace moebius
