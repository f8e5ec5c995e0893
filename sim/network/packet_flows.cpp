#include "sim/network/packet_flows.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "hw/error.h"
#include "sim/network/calendar.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

struct Port {
  double busy_until = 0;  // s
  double per_byte = 0;    // s
  std::int32_t newest = -1;  // packet that was queued last, and when it leaves
  double newest_leaves = 0;
};

// The ports of one path there, and of one back.
struct Way {
  std::int32_t there = 0, back = 0;  // first of `length` in PacketRun::hops_
};

struct Flow {
  std::int32_t sender = 0, receiver = 0;
  std::int32_t first_way = 0, ways = 0, length = 0;
  double link_latency = 0;  // s, of each of `length` links
  double last_bytes = 0;    // on the wire, of the last packet
  std::int32_t packets = 0, sent = 0, arrived = 0, credits = 0;
  std::int32_t resend = 0;   // trimmed and known to be, not yet sent again
  bool resend_last = false;  // the last packet is among them
  bool waits_to_send = false, waits_for_pull = false;
  std::int32_t next_way = 0;
  std::uint64_t skip = 0;  // entropies (modulo 64) whose last packet was trimmed
};

struct Packet {
  std::int32_t flow = 0, way = 0;  // way: of the flow
  std::int16_t stage = 0;          // the port that it reaches next; the flow's length: the receiver
  bool last = false;
};

struct Sender {
  std::int32_t port = 0;
  std::deque<std::int32_t> ready = {};  // flows, round robin
  bool scheduled = false;
};

struct Receiver {
  std::deque<std::int32_t> asking = {};  // flows that want credit, round robin
  double spacing = 0;               // s between pulls
  double next_pull = 0;
  bool scheduled = false;
};

class PacketRun {
 public:
  PacketRun(const Fabric& fabric, const Transport& transport, std::uint64_t seed)
      : fabric_(fabric), transport_(transport), seed_(seed) {}

  PacketFlowTimes run(std::span<const PacketFlow> flows) {
    for (const PacketFlow& flow : flows) add(flow);
    times_.completion.assign(flows.size(), 0);
    calendar_.emplace(calendar_step(), longest_delay());
    for (std::int32_t i = 0; i < std::ssize(flows_); ++i) queue_up(i, 0);
    for (open_ = std::ssize(flows_); open_ > 0;) handle(calendar_->pop());
    return std::move(times_);
  }

 private:
  enum Kind : std::uint8_t { kArrive, kSend, kPull, kTrimKnown, kLastTrimKnown };

  void add(const PacketFlow& flow);
  int path_of(const PacketFlow& flow, int entropy, int paths) const;
  std::int32_t add_route(int from, int to, int path);
  std::int32_t port_of(WireId wire);
  double calendar_step() const { return ports_.front().per_byte * transport_.packet / 2; }
  double longest_delay() const;
  void handle(const CalendarEvent& event);
  void queue_up(std::int32_t flow, double now);
  void send(std::int32_t sender, double now);
  void emit(Flow& flow, std::int32_t index, Sender& sender, double now);
  void arrive(std::int32_t packet, double now);
  void trim(std::int32_t packet, double now);
  void deliver(std::int32_t packet, double now);
  void trim_known(std::int32_t flow, bool last, double now);
  void ask(std::int32_t flow, double now);
  void pull(std::int32_t receiver, double now);
  void control(const Flow& flow, std::int32_t way, double now);
  bool may_send(const Flow& flow) const;
  int wanted(const Flow& flow) const;
  std::int32_t next_way(Flow& flow) const;
  double bytes_of(const Packet& packet) const {
    return packet.last ? flows_[packet.flow].last_bytes : transport_.packet;
  }

  const Fabric& fabric_;
  const Transport& transport_;
  const std::uint64_t seed_;
  std::vector<Port> ports_;
  std::map<WireId, std::int32_t> port_ids_;
  std::vector<std::int32_t> hops_;
  std::vector<Way> ways_;
  std::vector<Flow> flows_;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
  std::map<std::int32_t, std::int32_t> sender_of_port_, receiver_of_port_;
  std::vector<Packet> packets_;
  std::vector<std::int32_t> free_;
  std::optional<Calendar> calendar_;
  PacketFlowTimes times_;
  std::int64_t open_ = 0;
  std::uint64_t draws_ = 0;
};

std::int32_t PacketRun::port_of(WireId wire) {
  const auto [entry, fresh] = port_ids_.try_emplace(wire, static_cast<std::int32_t>(ports_.size()));
  if (fresh) {
    const bool scale_up = wire.kind <= WireKind::kScaleUpPair;
    const double share = scale_up ? 1 : fabric_.spec().transport_efficiency;
    ports_.push_back({.per_byte = share / fabric_.capacity(wire).value});
  }
  return entry->second;
}

std::int32_t PacketRun::add_route(int from, int to, int path) {
  std::vector<WireId> wires;
  fabric_.route_by_ports(from, to, path, wires);
  const auto first = static_cast<std::int32_t>(hops_.size());
  for (const WireId& wire : wires) hops_.push_back(port_of(wire));
  return first;
}

int PacketRun::path_of(const PacketFlow& flow, int entropy, int paths) const {
  if (flow.path >= 0) return flow.path;
  if (fabric_.spec().routing == Routing::kStatic) return flow.to % paths;
  return static_cast<int>(random_bits(seed_, flows_.size(), entropy) % paths);
}

void PacketRun::add(const PacketFlow& given) {
  CHECK(given.from != given.to && given.bytes > 0, "a flow between two devices, with bytes");
  Flow flow;
  flow.packets = static_cast<std::int32_t>(std::ceil(given.bytes / transport_.payload()));
  flow.last_bytes = given.bytes - (flow.packets - 1) * transport_.payload() + transport_.header;
  const bool many = given.path < 0 && (fabric_.spec().routing == Routing::kSpray ||
                                       fabric_.spec().routing == Routing::kAdaptive);
  const int entropies = given.path >= 0 ? 1 : many ? transport_.entropies : fabric_.spec().queue_pairs;
  const int paths = fabric_.num_paths(given.from, given.to);
  flow.ways = paths == 1 ? 1 : std::min(entropies, flow.packets);
  flow.first_way = static_cast<std::int32_t>(ways_.size());
  for (int i = 0; i < flow.ways; ++i) {
    const std::int32_t there = add_route(given.from, given.to, path_of(given, i, paths));
    flow.length = static_cast<std::int32_t>(hops_.size()) - there;
    const int back = static_cast<int>(random_bits(seed_, flows_.size(), i, 1) % paths);
    ways_.push_back({there, add_route(given.to, given.from, back)});
  }
  flow.link_latency = fabric_.latency(given.from, given.to).seconds() / flow.length;
  const std::int32_t out = hops_[ways_[flow.first_way].there];
  const std::int32_t in = hops_[ways_[flow.first_way].there + flow.length - 1];
  const auto [sender, new_sender] = sender_of_port_.try_emplace(out, std::ssize(senders_));
  if (new_sender) senders_.push_back({.port = out});
  const auto [receiver, new_receiver] = receiver_of_port_.try_emplace(in, std::ssize(receivers_));
  // A pull asks for `credit` bytes, not for a packet.
  const double spacing = ports_[in].per_byte * transport_.pull_spacing * transport_.packet / transport_.credit;
  if (new_receiver) receivers_.push_back({.spacing = spacing});
  flow.sender = sender->second;
  flow.receiver = receiver->second;
  times_.packets += flow.packets;
  flows_.push_back(flow);
}

// A full queue, or a header's way to the receiver and the answer's way back.
double PacketRun::longest_delay() const {
  double slowest = 0, farthest = 0;
  for (const Port& port : ports_) slowest = std::max(slowest, port.per_byte);
  for (const Flow& flow : flows_) {
    farthest =
        std::max(farthest, flow.length * (flow.link_latency + 2 * slowest * transport_.header));
  }
  return (transport_.queue + 2) * transport_.packet * slowest * 1.5 + 2 * farthest;
}

void PacketRun::handle(const CalendarEvent& event) {
  switch (static_cast<Kind>(event.kind)) {
    case kArrive:
      return arrive(event.what, event.time);
    case kSend:
      return send(event.what, event.time);
    case kPull:
      return pull(event.what, event.time);
    case kTrimKnown:
      return trim_known(event.what, false, event.time);
    case kLastTrimKnown:
      return trim_known(event.what, true, event.time);
  }
}

bool PacketRun::may_send(const Flow& flow) const {
  if (flow.sent < std::min(flow.packets, transport_.window)) return true;
  return flow.credits > 0 && (flow.resend > 0 || flow.sent < flow.packets);
}

// Packets that the receiver still has to grant: those trimmed, and those beyond the window once it is (nearly)
// out.
int PacketRun::wanted(const Flow& flow) const {
  int fresh = 0;
  if (flow.sent + transport_.credit_ahead >= transport_.window)
    fresh = flow.packets - std::max(flow.sent, transport_.window);
  return std::max(0, fresh) + flow.resend - flow.credits;
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
    ask(flow, now);
  }
  sender.scheduled = !sender.ready.empty();
  if (sender.scheduled) calendar_->push({port.busy_until, index, kSend});
}

std::int32_t PacketRun::next_way(Flow& flow) const {
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
    ++times_.resent;
  } else {
    if (flow.sent >= transport_.window) --flow.credits;
    packet.last = ++flow.sent == flow.packets;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(packets_.size()));
    packets_.emplace_back();
  }
  const std::int32_t id = free_.back();
  free_.pop_back();
  packets_[id] = packet;
  Port& port = ports_[sender.port];
  port.busy_until = now + bytes_of(packet) * port.per_byte;
  calendar_->push({port.busy_until + flow.link_latency, id, kArrive});
}

void PacketRun::arrive(std::int32_t id, double now) {
  Packet& packet = packets_[id];
  const Flow& flow = flows_[packet.flow];
  if (packet.stage == flow.length) return deliver(id, now);
  Port& port = ports_[hops_[ways_[flow.first_way + packet.way].there + packet.stage]];
  const double bytes = bytes_of(packet);
  if (port.busy_until - now + bytes * port.per_byte >
      (transport_.queue + 1) * transport_.packet * port.per_byte) {
    // One of two: the newest in the queue gives its place to the one that arrives.
    const bool newest_waits = port.newest >= 0 && port.newest_leaves - bytes * port.per_byte > now;
    if (newest_waits && (random_bits(seed_, ++draws_) & 1) != 0) {
      std::swap(packets_[id], packets_[port.newest]);
      ++packets_[port.newest].stage;
      --packets_[id].stage;
    }
    return trim(id, now);
  }
  port.busy_until = std::max(port.busy_until, now) + bytes * port.per_byte;
  port.newest = id;
  port.newest_leaves = port.busy_until;
  ++packet.stage;
  calendar_->push({port.busy_until + flow.link_latency, id, kArrive});
}

void PacketRun::trim(std::int32_t id, double now) {
  const Packet packet = packets_[id];
  free_.push_back(id);
  Flow& flow = flows_[packet.flow];
  const Way& way = ways_[flow.first_way + packet.way];
  double per_byte = 0;
  for (int stage = packet.stage; stage < flow.length; ++stage) {
    Port& port = ports_[hops_[way.there + stage]];
    port.busy_until = std::max(port.busy_until, now) + transport_.header * port.per_byte;
    per_byte = port.per_byte;
  }
  control(flow, packet.way, now);
  const int links = 2 * flow.length - packet.stage;
  flow.skip |= std::uint64_t{1} << (packet.way % 64);
  calendar_->push({now + links * (flow.link_latency + transport_.header * per_byte), packet.flow,
                   packet.last ? kLastTrimKnown : kTrimKnown});
}

// One acknowledgement, pull or request to resend on its way back: it goes before data.
void PacketRun::control(const Flow& flow, std::int32_t way, double now) {
  const std::int32_t first = ways_[flow.first_way + way].back;
  for (int stage = 0; stage < flow.length; ++stage) {
    Port& port = ports_[hops_[first + stage]];
    port.busy_until = std::max(port.busy_until, now) + transport_.header * port.per_byte;
  }
}

void PacketRun::deliver(std::int32_t id, double now) {
  const Packet packet = packets_[id];
  free_.push_back(id);
  Flow& flow = flows_[packet.flow];
  ++flow.arrived;
  const bool done = flow.arrived == flow.packets;
  if (done || flow.arrived % transport_.packets_per_ack == 0) control(flow, packet.way, now);
  if (!done) return;
  const double header = transport_.header * ports_[hops_[ways_[flow.first_way].back]].per_byte;
  times_.completion[packet.flow] = now + flow.length * (flow.link_latency + header);
  --open_;
}

void PacketRun::trim_known(std::int32_t index, bool last, double now) {
  Flow& flow = flows_[index];
  ++flow.resend;
  flow.resend_last |= last;
  ask(index, now);
}

void PacketRun::ask(std::int32_t index, double now) {
  Flow& flow = flows_[index];
  if (flow.waits_for_pull || wanted(flow) <= 0) return;
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
  ++flow.credits;
  control(flow, flow.next_way, now);
  flow.waits_for_pull = wanted(flow) > 0;
  if (flow.waits_for_pull) receiver.asking.push_back(id);
  receiver.next_pull = now + receiver.spacing;
  receiver.scheduled = !receiver.asking.empty();
  if (receiver.scheduled) calendar_->push({receiver.next_pull, index, kPull});
  queue_up(id, now);
}

}  // namespace

PacketFlowTimes run_packet_flows(const Fabric& fabric, const Transport& transport,
                                 std::span<const PacketFlow> flows, std::uint64_t seed) {
  return PacketRun(fabric, transport, seed).run(flows);
}

}  // namespace moebius
