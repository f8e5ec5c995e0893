// Packets on their way: ports, queues, trimming, control packets. The ends are in packet_ends.cpp.
#include "sim/network/packet_run.h"

#include <cmath>
#include <utility>

#include "hw/error.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

constexpr int kFullest = 3;

}  // namespace

PacketRun::PacketRun(const Fabric& fabric, const PacketTransport& transport, std::uint64_t seed, int burst)
    : fabric_(fabric),
      transport_(transport),
      seed_(seed),
      adaptive_(fabric.spec().routing == Routing::kAdaptive),
      burst_(burst),
      bursts_per_ack_(std::max(1, transport.packets_per_ack / burst)),
      window_(static_cast<std::int64_t>(transport.window * transport.packet)),
      grant_(static_cast<std::int64_t>(transport.credit * burst)) {}

void PacketRun::advance(double to) {
  while (busy() && calendar_->next_time() <= to) {
    const CalendarEvent event = calendar_->pop();
    fetch();
    handle(event);
  }
}

// What soon follows comes into the cache meanwhile: a large run's packets and routes are in none near.
void PacketRun::fetch() const {
  constexpr int kPackets = 8, kRoutes = 4;
  if (const CalendarEvent* event = calendar_->ahead(kPackets)) {
    if (event->kind == kArrive) __builtin_prefetch(&packets_[event->what]);
    if (event->kind == kCredit) __builtin_prefetch(&out_[event->what]);
  }
  const CalendarEvent* event = calendar_->ahead(kRoutes);
  if (!event || event->kind != kArrive) return;
  const Packet& packet = packets_[event->what];
  if (packet.left > 0)
    __builtin_prefetch(&hops_[packet.next]);
  else
    __builtin_prefetch(&in_[packet.flow]);
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
      out_[event.what].credit += grant_;
      out_[event.what].pulled += grant_;
      return hear(event.what, event.time);
    case kTrimmed:
      return trimmed(event.what, event.time);
    case kHeard:
      return hear(event.what, event.time);
    case kResend:
      ++out_[event.what].resend;
      return hear(event.what, event.time);
    case kDue:
      out_[event.what].pauses = false;
      return queue_up(event.what, event.time);
  }
}

void PacketRun::arrive(std::int32_t id, double now) {
  Packet& packet = packets_[id];
  if (packet.left == 0) return deliver(id, now);
  if (adaptive_) turn(packet, now);
  Port& port = ports_[hops_[packet.next]];
  const double bytes = bytes_of(packet);
  if (port.busy_until - now > (transport_.queue - 1) * transport_.packet * port.per_byte) {
    // One of two: the newest in the queue gives its place to the one that arrives.
    const bool newest_waits = port.newest >= 0 && port.newest_leaves - bytes * port.per_byte > now;
    if (newest_waits && (random_bits(seed_, ++draws_) & 1) != 0) {
      std::swap(packets_[id], packets_[port.newest]);
      ++packets_[port.newest].next;
      --packets_[port.newest].left;
      --packets_[id].next;
      ++packets_[id].left;
    }
    return trim(id, now);
  }
  const double start = std::max(port.busy_until, now);
  port.busy_until = start + bytes * port.per_byte;
  port.newest = id;
  port.newest_leaves = port.busy_until;
  ++packet.next;
  --packet.left;
  calendar_->push({start + head_of(packet) * port.per_byte + packet.latency, id, kArrive});
}

// Of the ways that go on from the port behind it, one whose next port is filled least; any of several.
void PacketRun::turn(Packet& packet, double now) {
  const Outgoing& flow = out_[packet.flow];
  const std::int32_t stage = flow.length - packet.left;
  if (2 * (stage + 1) > flow.length) return;  // on its way down
  std::array<std::int32_t, kMostWays> best;
  std::size_t count = 0;
  int least = kFullest;
  for (std::int32_t way = 0; way < flow.ways; ++way) {
    const std::int32_t hop = ways_[flow.first_way + way] + stage;
    if (hops_[hop - 1] != hops_[packet.next - 1]) continue;
    const int fill = fill_of(ports_[hops_[hop]], now);
    if (fill < least) count = 0;
    least = std::min(least, fill);
    if (fill == least) best[count++] = way;
  }
  CHECK(count > 0, "the way of a packet does not go on from its port");
  packet.way = best[random_bits(seed_, ++draws_) % count];
  packet.next = ways_[flow.first_way + packet.way] + stage;
}

// In the coarse steps in which switches compare queues; a packet being sent counts whole.
int PacketRun::fill_of(const Port& port, double now) const {
  const double share = std::ceil((port.busy_until - now) * port.packets_per_s) / transport_.queue;
  return share < 0.05 ? 0 : share < 0.1 ? 1 : share < 0.2 ? 2 : kFullest;
}

void PacketRun::trim(std::int32_t id, double now) {
  const Packet& packet = packets_[id];
  calendar_->push({now + control(packet.next, packet.left, packet.latency, now), id, kTrimmed});
}

// An acknowledgement, a pull, a request to resend or a trimmed packet: seconds until it has crossed the
// ports. It goes before data, but waits for the packet that is being sent.
double PacketRun::control(std::int32_t first, std::int32_t ports, double latency, double now) {
  double at = now;
  for (std::int32_t hop = first; hop < first + ports; ++hop) {
    Port& port = ports_[hops_[hop]];
    const double queued = (port.busy_until - at) * port.packets_per_s;
    if (queued > 0) at += (queued - static_cast<std::int32_t>(queued)) * transport_.packet * port.per_byte;
    port.busy_until = std::max(port.busy_until, now) + header() * port.per_byte;
    at += transport_.header * port.per_byte + latency;
  }
  return at - now;
}

}  // namespace moebius
