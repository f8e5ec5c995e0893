// Both ends of the flows of a packet run: what senders may send, what receivers grant.
#include <algorithm>
#include <bit>
#include <limits>

#include "sim/network/packet_run.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

constexpr std::int64_t kWithoutEnd = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::int64_t kQuantum = 512;  // bytes in which credit is counted

}  // namespace

void PacketRun::queue_up(std::int32_t index, double now) {
  Outgoing& flow = out_[index];
  if (flow.waits || flow.pauses || !may_try(flow)) return;
  if (flow.due > now) return pause(index, now);
  flow.waits = true;
  Sender& sender = senders_[flow.sender];
  sender.ready.push_back(index);
  if (sender.scheduled) return;
  sender.scheduled = true;
  send_when_free(flow.sender, now);
}

void PacketRun::send_when_free(std::int32_t index, double now) {
  const double free = ports_[senders_[index].port].busy_until;
  calendar_->push({std::clamp(free, now, now + patience()), index, kSend});
}

// In steps that the calendar reaches.
void PacketRun::pause(std::int32_t index, double now) {
  out_[index].pauses = true;
  calendar_->push({std::min(out_[index].due, now + furthest_ / 2), index, kDue});
}

void PacketRun::send(std::int32_t index, double now) {
  Sender& sender = senders_[index];
  if (ports_[sender.port].busy_until > now + patience()) return send_when_free(index, now);
  while (!sender.ready.empty()) {
    const std::int32_t id = sender.ready.front();
    Outgoing& flow = out_[id];
    sender.ready.pop_front();
    flow.waits = false;
    if (!has_more(flow) || !spend(flow)) continue;  // its turn is lost
    emit(flow, id, sender, now);
    queue_up(id, now);
    break;
  }
  sender.scheduled = !sender.ready.empty();
  if (!sender.scheduled) return;
  send_when_free(index, now);
  const Outgoing& next = out_[sender.ready.front()];
  if (next.turn < next.ways) __builtin_prefetch(&hops_[ways_[next.first_way + next.turn]]);
  if (sender.ready.size() > 1) __builtin_prefetch(&out_[sender.ready[1]]);
}

// A sender that has been heard sends on credit alone, but each turn that it loses for want of it takes a
// packet from what it might have sent unasked, so that it asks for more.
bool PacketRun::spend(Outgoing& flow) {
  const bool last = flow.resend == 0 ? flow.sent + 1 == flow.packets : flow.resend_last && flow.resend == 1;
  const auto bytes = static_cast<std::int64_t>(last ? flow.last_bytes : full());
  const bool on_credit = flow.credit > 0;
  (on_credit ? flow.credit : flow.unasked) -= bytes;
  return on_credit || (!flow.heard && flow.unasked > -bytes);
}

void PacketRun::ask_for(Outgoing& flow) {
  const std::int32_t packets = flow.packets - flow.sent;
  const double left = packets == 0 ? 0 : (packets - 1) * full() + flow.last_bytes;
  const std::int64_t needs = std::min(static_cast<std::int64_t>(left), window_);
  const std::int64_t target = needs - flow.credit - flow.unasked + flow.pulled;
  // While the window is not out it asks for something: heard before its end, a flow has credit alone.
  const std::int64_t least = packets > 0 && flow.unasked > 0 ? flow.pulled + 1 : target;
  flow.asks = target <= -kQuantum ? kWithoutEnd : std::max(target, least);
}

std::int32_t PacketRun::next_way(Outgoing& flow) {
  if (adaptive_) return 0;
  const std::int32_t mask = std::has_single_bit(static_cast<std::uint32_t>(flow.ways)) ? flow.ways - 1 : 0;
  while (true) {
    if (flow.turn == flow.ways) {  // the next round is in another order
      flow.turn = 0;
      flow.order = static_cast<std::int32_t>(random_bits(seed_, ++draws_) & mask);
    }
    const std::int32_t way = flow.turn++ ^ flow.order;
    const std::uint64_t bit = std::uint64_t{1} << (way % 64);
    if (flow.ways == 1 || (flow.skip & bit) == 0) return way;
    flow.skip &= ~bit;
  }
}

void PacketRun::emit(Outgoing& flow, std::int32_t index, Sender& sender, double now) {
  Packet packet{.flow = index, .way = next_way(flow)};
  if (flow.resend > 0) {
    packet.last = flow.resend_last && flow.resend == 1;
    if (packet.last) flow.resend_last = false;
    --flow.resend;
    resent_ += burst_;
  } else {
    packet.last = ++flow.sent == flow.packets;
    ask_for(flow);
  }
  packet.asks = flow.asks;
  packet.next = ways_[flow.first_way + packet.way] + 1;
  packet.left = static_cast<std::int16_t>(flow.length - 1);
  packet.latency = flow.latency;
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(packets_.size()));
    packets_.emplace_back();
  }
  const std::int32_t id = free_.back();
  free_.pop_back();
  packets_[id] = packet;
  Port& port = ports_[sender.port];
  const double start = std::max(now, port.busy_until);
  port.busy_until = start + bytes_of(packet) * port.per_byte;
  flow.due = flow.pace > 0 ? start + flow.pace : 0;
  const double there = start + head_of(packet) * port.per_byte + flow.latency;
  // At the first switch's way up only packets of its hosts meet, all as long under way: in this order.
  if (flow.length > 2) return arrive(id, there);
  calendar_->push({there, id, kArrive});
}

void PacketRun::hear(std::int32_t index, double now) {
  out_[index].heard = true;
  queue_up(index, now);
}

// The header reaches the receiver, who asks for the packet again.
void PacketRun::trimmed(std::int32_t id, double now) {
  const Packet packet = packets_[id];
  free_.push_back(id);
  Outgoing& out = out_[packet.flow];
  Incoming& in = in_[packet.flow];
  out.skip |= std::uint64_t{1} << (packet.way % 64);
  out.resend_last |= packet.last;
  Receiver& receiver = receivers_[in.receiver];
  if (in.resend == 0) {
    receiver.resending.push_back(packet.flow);
    wake(receiver, in.receiver, now);
  }
  in.resend += (static_cast<std::int64_t>(transport_.packet * burst_) + kQuantum - 1) / kQuantum * kQuantum;
  calendar_->push({now + control(in.back, out.length, out.latency, now), packet.flow, kResend});
  ask(packet.flow, packet.asks, now);
}

void PacketRun::deliver(std::int32_t id, double now) {
  const Packet packet = packets_[id];
  free_.push_back(id);
  Incoming& in = in_[packet.flow];
  ++in.arrived;
  ask(packet.flow, packet.asks, now);
  const Outgoing& out = out_[packet.flow];
  if (in.arrived == out.packets) return complete(packet, now);
  if (in.arrived > 1 && in.arrived % bursts_per_ack_ != 0) return;
  const double back = control(in.back, out.length, out.latency, now);
  if (!out.heard) calendar_->push({now + back, packet.flow, kHeard});
}

void PacketRun::complete(const Packet& packet, double now) {
  const Outgoing& out = out_[packet.flow];
  Incoming& in = in_[packet.flow];
  const double per_byte = ports_[hops_[in.back]].per_byte;
  const double arrived = now + (bytes_of(packet) - head_of(packet)) * per_byte;
  ended_.push_back({packet.flow, arrived, arrived + control(in.back, out.length, out.latency, arrived)});
  in.done = true;
  in.asked = std::min(in.asked, in.granted + window_);
  --open_;
  Receiver& receiver = receivers_[in.receiver];
  if (--receiver.open > 0) return;
  for (auto* list : {&receiver.resending, &receiver.asking, &receiver.idle}) {
    for (const std::int32_t flow : *list) in_[flow].asks = in_[flow].idle = false;
    list->clear();
  }
}

void PacketRun::ask(std::int32_t index, std::int64_t bytes, double now) {
  Incoming& in = in_[index];
  in.asked = std::max(in.asked, bytes);
  if (in.asks || in.asked <= in.granted) return;
  in.asks = true;
  Receiver& receiver = receivers_[in.receiver];
  receiver.asking.push_back(index);
  wake(receiver, in.receiver, now);
}

void PacketRun::wake(Receiver& receiver, std::int32_t index, double now) {
  if (receiver.scheduled) return;
  receiver.scheduled = true;
  calendar_->push({std::max(now, receiver.next_pull), index, kPull});
}

// Who has to send again, then who asks, then who did: those may have more than they said.
std::deque<std::int32_t>* PacketRun::next_to_pull(Receiver& receiver) {
  if (!receiver.resending.empty()) return &receiver.resending;
  if (!receiver.asking.empty()) return &receiver.asking;
  while (!receiver.idle.empty()) {
    Incoming& in = in_[receiver.idle.front()];
    if (!in.asks && (!in.done || in.granted - in.asked < window_)) return &receiver.idle;
    in.idle = false;
    receiver.idle.pop_front();
  }
  return nullptr;
}

void PacketRun::pull(std::int32_t index, double now) {
  Receiver& receiver = receivers_[index];
  std::deque<std::int32_t>* list = next_to_pull(receiver);
  receiver.scheduled = list != nullptr;
  if (!list) return;
  const std::int32_t flow = list->front();
  list->pop_front();
  Incoming& in = in_[flow];
  const Outgoing& out = out_[flow];
  in.granted += grant_;
  in.resend = std::max<std::int64_t>(0, in.resend - grant_);
  if (list == &receiver.asking) in.asks = false;
  if (list == &receiver.idle) in.idle = false;
  if (list == &receiver.resending && in.resend > 0) {
    receiver.resending.push_back(flow);
  } else if (in.asked > in.granted) {
    if (!in.asks) receiver.asking.push_back(flow);
    in.asks = true;
  } else if (!in.asks) {
    if (!in.idle) receiver.idle.push_back(flow);
    in.idle = true;
  }
  receiver.next_pull = now + receiver.spacing;
  calendar_->push({receiver.next_pull, index, kPull});
  const double back = control(in.back, out.length, out.latency, now);
  if (!in.done) calendar_->push({now + back, flow, kCredit});
}

}  // namespace moebius
