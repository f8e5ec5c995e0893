// Packets on their way: ports, queues, trimming, control packets. The ends are in packet_ends.cpp.
#include "sim/network/packet_run.h"

#include <utility>

#include "hw/error.h"
#include "workloads/routing/routing.h"

namespace moebius {

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
  }
}

void PacketRun::arrive(std::int32_t id, double now) {
  Packet& packet = packets_[id];
  if (packet.left == 0) return deliver(id, now);
  Port& port = ports_[hops_[packet.next]];
  const double bytes = bytes_of(packet);
  if (port.busy_until - now + bytes * port.per_byte >
      (transport_.queue + burst_) * transport_.packet * port.per_byte) {
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

void PacketRun::trim(std::int32_t id, double now) {
  const Packet& packet = packets_[id];
  calendar_->push({now + control(packet.next, packet.left, packet.latency, now), id, kTrimmed});
}

// An acknowledgement, a pull, a request to resend or a trimmed packet: seconds until it has crossed the ports.
// It goes before data, but waits for the packet that is being sent.
double PacketRun::control(std::int32_t first, std::int32_t ports, double latency, double now) {
  double at = now;
  for (std::int32_t hop = first; hop < first + ports; ++hop) {
    Port& port = ports_[hops_[hop]];
    const double queued = port.busy_until - at, packet = transport_.packet * port.per_byte;
    if (queued > 0) at += queued - packet * static_cast<double>(static_cast<std::int64_t>(queued / packet));
    port.busy_until = std::max(port.busy_until, now) + header() * port.per_byte;
    at += transport_.header * port.per_byte + latency;
  }
  return at - now;
}

}  // namespace moebius
