#include "sim/network/packet_run.h"

#include <utility>

#include "hw/error.h"
#include "workloads/routing/routing.h"

namespace moebius {

PacketRun::PacketRun(const Fabric& fabric, const Transport& transport, std::uint64_t seed, int burst)
    : fabric_(fabric),
      transport_(transport),
      seed_(seed),
      adaptive_(fabric.spec().routing == Routing::kAdaptive),
      burst_(burst),
      window_(std::max(1, static_cast<int>(std::lround(1.0 * transport.window / burst)))),
      bursts_per_ack_(std::max(1, transport.packets_per_ack / burst)) {}

void PacketRun::advance(double to) {
  while (busy() && calendar_->next_time() <= to) handle(calendar_->pop());
}

void PacketRun::handle(const CalendarEvent& event) {
  switch (static_cast<Kind>(event.kind)) {
    case kArrive:
      return arrive(event.what, event.time);
    case kSend:
      return send(event.what, event.time);
    case kPull:
      return pull(event.what, event.time);
    case kCredit:
      return credit(event.what, event.time);
    case kTrimmed:
      return trimmed(event.what, event.time);
  }
}

bool PacketRun::may_send(const Flow& flow) const {
  if (flow.received == 0 && flow.sent < std::min(flow.packets, window_)) return true;
  return flow.credits > 0 && (flow.resend > 0 || flow.sent < flow.packets);
}

void PacketRun::queue_up(std::int32_t index, double now) {
  Flow& flow = flows_[index];
  if (flow.waits_to_send || !may_send(flow)) return;
  flow.waits_to_send = true;
  Sender& sender = senders_[flow.sender];
  sender.ready.push_back(index);
  if (sender.scheduled) return;
  sender.scheduled = true;
  calendar_->push({std::max(now, ports_[sender.port].busy_until), flow.sender, kSend});
}

void PacketRun::send(std::int32_t index, double now) {
  Sender& sender = senders_[index];
  Port& port = ports_[sender.port];
  if (port.busy_until <= now && !sender.ready.empty()) {
    const std::int32_t flow = sender.ready.front();
    sender.ready.pop_front();
    flows_[flow].waits_to_send = false;
    emit(flows_[flow], flow, sender, now);
    if (may_send(flows_[flow])) {
      flows_[flow].waits_to_send = true;
      sender.ready.push_back(flow);
    }
  }
  sender.scheduled = !sender.ready.empty();
  if (sender.scheduled) calendar_->push({port.busy_until, index, kSend});
}

// All that is still to be sent, less what may go without credit or with the credit at hand.
std::int32_t PacketRun::asks(const Flow& flow) const {
  const int unasked = flow.received > 0 ? 0 : std::max(0, window_ - flow.sent);
  const int left = flow.packets - flow.sent + flow.resend;
  return flow.received + left - flow.credits - unasked;
}

std::int32_t PacketRun::next_way(Flow& flow) {
  if (adaptive_) return static_cast<std::int32_t>(random_bits(seed_, ++draws_) % flow.ways);
  while (true) {
    const std::int32_t way = flow.next_way;
    flow.next_way = way + 1 == flow.ways ? 0 : way + 1;
    const std::uint64_t bit = std::uint64_t{1} << (way % 64);
    if (flow.ways == 1 || (flow.skip & bit) == 0) return way;
    flow.skip &= ~bit;
  }
}

void PacketRun::emit(Flow& flow, std::int32_t index, Sender& sender, double now) {
  Packet packet{.flow = index, .way = next_way(flow), .stage = 1};
  if (flow.resend > 0 && flow.credits > 0) {
    packet.last = flow.resend_last && flow.resend == 1;
    if (packet.last) flow.resend_last = false;
    --flow.resend;
    --flow.credits;
    resent_ += burst_;
  } else {
    if (flow.credits > 0) --flow.credits;
    packet.last = ++flow.sent == flow.packets;
  }
  packet.asks = asks(flow);
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(packets_.size()));
    packets_.emplace_back();
  }
  const std::int32_t id = free_.back();
  free_.pop_back();
  packets_[id] = packet;
  Port& port = ports_[sender.port];
  port.busy_until = now + bytes_of(packet) * port.per_byte;
  calendar_->push({now + head_of(packet) * port.per_byte + flow.link_latency, id, kArrive});
}

void PacketRun::arrive(std::int32_t id, double now) {
  Packet& packet = packets_[id];
  const Flow& flow = flows_[packet.flow];
  if (packet.stage == flow.length) return deliver(id, now);
  Port& port = ports_[hops_[ways_[flow.first_way + packet.way].there + packet.stage]];
  const double bytes = bytes_of(packet);
  if (port.busy_until - now + bytes * port.per_byte >
      (transport_.queue + burst_) * transport_.packet * port.per_byte) {
    // One of two: the newest in the queue gives its place to the one that arrives.
    const bool newest_waits = port.newest >= 0 && port.newest_leaves - bytes * port.per_byte > now;
    if (newest_waits && (random_bits(seed_, ++draws_) & 1) != 0) {
      std::swap(packets_[id], packets_[port.newest]);
      ++packets_[port.newest].stage;
      --packets_[id].stage;
    }
    return trim(id, now);
  }
  const double start = std::max(port.busy_until, now);
  port.busy_until = start + bytes * port.per_byte;
  port.newest = id;
  port.newest_leaves = port.busy_until;
  ++packet.stage;
  calendar_->push({start + head_of(packet) * port.per_byte + flow.link_latency, id, kArrive});
}

void PacketRun::trim(std::int32_t id, double now) {
  const Packet& packet = packets_[id];
  const Flow& flow = flows_[packet.flow];
  const Way& way = ways_[flow.first_way + packet.way];
  double per_byte = 0;
  for (int stage = packet.stage; stage < flow.length; ++stage) {
    Port& port = ports_[hops_[way.there + stage]];
    port.busy_until = std::max(port.busy_until, now) + header() * port.per_byte;
    per_byte = port.per_byte;
  }
  const int links = flow.length - packet.stage;
  calendar_->push({now + links * (flow.link_latency + transport_.header * per_byte), id, kTrimmed});
}

// The header reaches the receiver, who asks for the packet again. The sender is told at the same time: it
// needs credit as well, and that has the same way to go.
void PacketRun::trimmed(std::int32_t id, double now) {
  const Packet packet = packets_[id];
  free_.push_back(id);
  Flow& flow = flows_[packet.flow];
  flow.skip |= std::uint64_t{1} << (packet.way % 64);
  ++flow.resend;
  flow.resend_last |= packet.last;
  ++flow.asked;
  control(flow, packet.way, now);
  ask(packet.flow, packet.asks, now);
}

// One acknowledgement, pull or request to resend on its way back: it goes before data.
void PacketRun::control(const Flow& flow, std::int32_t way, double now) {
  const std::int32_t first = ways_[flow.first_way + way].back;
  for (int stage = 0; stage < flow.length; ++stage) {
    Port& port = ports_[hops_[first + stage]];
    port.busy_until = std::max(port.busy_until, now) + header() * port.per_byte;
  }
}

void PacketRun::deliver(std::int32_t id, double now) {
  const Packet packet = packets_[id];
  free_.push_back(id);
  Flow& flow = flows_[packet.flow];
  ++flow.arrived;
  ask(packet.flow, packet.asks, now);
  const bool done = flow.arrived == flow.packets;
  if (done || flow.arrived % bursts_per_ack_ == 0) control(flow, packet.way, now);
  if (!done) return;
  const double per_byte = ports_[hops_[ways_[flow.first_way].back]].per_byte;
  const double tail = (bytes_of(packet) - head_of(packet)) * per_byte;
  ended_.push_back({packet.flow, now + tail,
                    now + tail + flow.length * (flow.link_latency + transport_.header * per_byte)});
}

void PacketRun::ask(std::int32_t index, std::int32_t credits, double now) {
  Flow& flow = flows_[index];
  flow.asked = std::max(flow.asked, credits);
  if (flow.waits_for_pull || flow.asked <= flow.granted) return;
  flow.waits_for_pull = true;
  Receiver& receiver = receivers_[flow.receiver];
  receiver.asking.push_back(index);
  if (receiver.scheduled) return;
  receiver.scheduled = true;
  calendar_->push({std::max(now, receiver.next_pull), flow.receiver, kPull});
}

void PacketRun::pull(std::int32_t index, double now) {
  Receiver& receiver = receivers_[index];
  const std::int32_t id = receiver.asking.front();
  receiver.asking.pop_front();
  Flow& flow = flows_[id];
  ++flow.granted;
  control(flow, flow.next_way, now);
  flow.waits_for_pull = flow.asked > flow.granted;
  if (flow.waits_for_pull) receiver.asking.push_back(id);
  receiver.next_pull = now + receiver.spacing;
  receiver.scheduled = !receiver.asking.empty();
  if (receiver.scheduled) calendar_->push({receiver.next_pull, index, kPull});
  const double header = transport_.header * ports_[senders_[flow.sender].port].per_byte;
  calendar_->push({now + flow.length * (flow.link_latency + header), id, kCredit});
}

void PacketRun::credit(std::int32_t index, double now) {
  ++flows_[index].credits;
  ++flows_[index].received;
  queue_up(index, now);
}

}  // namespace moebius
