#include "sim/network/packet_flows.h"

#include <algorithm>
#include <array>
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

constexpr double kManyPackets = 50'000;  // of all flows together, resent ones not counted

struct Port {
  double busy_until = 0;     // s
  double per_byte = 0;       // s
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
  std::int32_t packets = 0, sent = 0, arrived = 0;
  std::int32_t credits = 0;             // that the sender holds
  std::int32_t received = 0;            // that it ever got; from the first one on it sends on credit alone
  std::int32_t asked = 0, granted = 0;  // credits since the beginning, as the receiver counts them
  std::int32_t resend = 0;              // trimmed and known to be, not yet sent again
  bool resend_last = false;             // the last packet is among them
  bool waits_to_send = false, waits_for_pull = false;
  std::int32_t next_way = 0;
  std::uint64_t skip = 0;  // entropies (modulo 64) whose last packet was trimmed
};

struct Packet {
  std::int32_t flow = 0, way = 0;  // way: of the flow
  std::int32_t asks = 0;           // credits since the beginning that the sender asks for
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
  double spacing = 0;                    // s between pulls
  double next_pull = 0;
  bool scheduled = false;
};

class PacketRun {
 public:
  PacketRun(const Fabric& fabric, const Transport& transport, std::uint64_t seed)
      : fabric_(fabric),
        transport_(transport),
        seed_(seed),
        adaptive_(fabric.spec().routing == Routing::kAdaptive) {}

  PacketFlowTimes run(std::span<const PacketFlow> flows) {
    choose_burst(flows);
    for (const PacketFlow& flow : flows) add(flow);
    times_.completion.assign(flows.size(), 0);
    calendar_.emplace(calendar_step(), longest_delay());
    for (std::int32_t i = 0; i < std::ssize(flows_); ++i) queue_up(i, 0);
    for (open_ = std::ssize(flows_); open_ > 0;) handle(calendar_->pop());
    return std::move(times_);
  }

 private:
  enum Kind : std::uint8_t { kArrive, kSend, kPull, kCredit, kTrimmed };

  void choose_burst(std::span<const PacketFlow> flows);
  void add(const PacketFlow& flow);
  double packets_of(const PacketFlow& flow) const { return std::ceil(flow.bytes / transport_.payload()); }
  int path_of(const PacketFlow& flow, int entropy, int paths) const;
  std::int32_t route(int from, int to, int path, std::vector<std::int32_t>& known);
  std::int32_t port_of(WireId wire);
  double calendar_step() const { return ports_.front().per_byte * transport_.packet * burst_ / 2; }
  double longest_delay() const;
  void handle(const CalendarEvent& event);
  void queue_up(std::int32_t flow, double now);
  void send(std::int32_t sender, double now);
  void emit(Flow& flow, std::int32_t index, Sender& sender, double now);
  void arrive(std::int32_t packet, double now);
  void trim(std::int32_t packet, double now);
  void deliver(std::int32_t packet, double now);
  void trimmed(std::int32_t packet, double now);
  void credit(std::int32_t flow, double now);
  void ask(std::int32_t flow, std::int32_t credits, double now);
  void pull(std::int32_t receiver, double now);
  void control(const Flow& flow, std::int32_t way, double now);
  bool may_send(const Flow& flow) const;
  std::int32_t asks(const Flow& flow) const;
  std::int32_t next_way(Flow& flow);
  double bytes_of(const Packet& packet) const {
    return packet.last ? flows_[packet.flow].last_bytes : transport_.packet * burst_;
  }
  double head_of(const Packet& packet) const { return std::min(bytes_of(packet), transport_.packet); }
  double header() const { return transport_.header * burst_; }

  const Fabric& fabric_;
  const Transport& transport_;
  const std::uint64_t seed_;
  const bool adaptive_;
  int burst_ = 1;  // packets that stay together: what is called a packet below
  int window_ = 0, bursts_per_ack_ = 1;
  std::vector<Port> ports_;
  std::array<std::vector<std::int32_t>, kNumWireKinds> port_ids_;  // by kind and index; -1: not in use
  std::vector<std::int32_t> hops_;
  std::vector<WireId> wires_;               // of the route at hand
  std::vector<std::int32_t> there_, back_;  // of the flow at hand: routes by path
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
  std::vector<std::int32_t>& ids = port_ids_[static_cast<std::size_t>(wire.kind)];
  if (ids.size() <= static_cast<std::size_t>(wire.index)) ids.resize(wire.index + 1, -1);
  std::int32_t& id = ids[wire.index];
  if (id >= 0) return id;
  id = static_cast<std::int32_t>(ports_.size());
  const bool scale_up = wire.kind <= WireKind::kScaleUpPair;
  const double share = scale_up ? 1 : fabric_.spec().transport_efficiency;
  ports_.push_back({.per_byte = share / fabric_.capacity(wire).value});
  return id;
}

// Of each path once: entropies are many more than paths.
std::int32_t PacketRun::route(int from, int to, int path, std::vector<std::int32_t>& known) {
  if (known.size() <= static_cast<std::size_t>(path)) known.resize(path + 1, -1);
  if (known[path] >= 0) return known[path];
  wires_.clear();
  fabric_.route_by_ports(from, to, path, wires_);
  known[path] = static_cast<std::int32_t>(hops_.size());
  for (const WireId& wire : wires_) hops_.push_back(port_of(wire));
  return known[path];
}

int PacketRun::path_of(const PacketFlow& flow, int entropy, int paths) const {
  if (flow.path >= 0) return flow.path;
  if (fabric_.spec().routing == Routing::kStatic) return flow.to % paths;
  return static_cast<int>(random_bits(seed_, flows_.size(), entropy) % paths);
}

// Packets of a large run stay together by two to four, where a flow has enough of them: the queue of a port
// then holds eight bursts or more, and completion times stay within a few per cent.
void PacketRun::choose_burst(std::span<const PacketFlow> flows) {
  double all = 0;
  for (const PacketFlow& flow : flows) all += packets_of(flow);
  const double most = std::min(4.0, all / static_cast<double>(flows.size()) / 64);
  burst_ = std::max(1, static_cast<int>(std::min(most, std::ceil(all / kManyPackets))));
  window_ = std::max(1, static_cast<int>(std::lround(1.0 * transport_.window / burst_)));
  bursts_per_ack_ = std::max(1, transport_.packets_per_ack / burst_);
}

void PacketRun::add(const PacketFlow& given) {
  CHECK(given.from != given.to && given.bytes > 0, "a flow between two devices, with bytes");
  Flow flow;
  const double packets = packets_of(given);
  flow.packets = static_cast<std::int32_t>(std::ceil(packets / burst_));
  flow.last_bytes =
      given.bytes + packets * transport_.header - (flow.packets - 1.0) * burst_ * transport_.packet;
  const bool many = given.path < 0 && (fabric_.spec().routing == Routing::kSpray ||
                                       fabric_.spec().routing == Routing::kAdaptive);
  const int entropies = given.path >= 0 ? 1 : many ? transport_.entropies : fabric_.spec().queue_pairs;
  const int paths = fabric_.num_paths(given.from, given.to);
  flow.ways = paths == 1 ? 1 : std::min(entropies, flow.packets);
  flow.first_way = static_cast<std::int32_t>(ways_.size());
  there_.clear();
  back_.clear();
  for (int i = 0; i < flow.ways; ++i) {
    const std::int32_t there = route(given.from, given.to, path_of(given, i, paths), there_);
    if (i == 0) flow.length = static_cast<std::int32_t>(hops_.size()) - there;
    const int back = static_cast<int>(random_bits(seed_, flows_.size(), i, 1) % paths);
    ways_.push_back({there, route(given.to, given.from, back, back_)});
  }
  flow.link_latency = fabric_.latency(given.from, given.to).seconds() / flow.length;
  const std::int32_t out = hops_[ways_[flow.first_way].there];
  const std::int32_t in = hops_[ways_[flow.first_way].there + flow.length - 1];
  const auto [sender, new_sender] = sender_of_port_.try_emplace(out, std::ssize(senders_));
  if (new_sender) senders_.push_back({.port = out});
  const auto [receiver, new_receiver] = receiver_of_port_.try_emplace(in, std::ssize(receivers_));
  // A pull asks for `credit` bytes, not for a packet.
  const double spacing =
      ports_[in].per_byte * transport_.pull_spacing * transport_.packet / transport_.credit * burst_;
  if (new_receiver) receivers_.push_back({.spacing = spacing});
  flow.sender = sender->second;
  flow.receiver = receiver->second;
  times_.packets += static_cast<std::int64_t>(packets);
  flows_.push_back(flow);
}

// A full queue, or a header's way to the receiver and the answer's way back.
double PacketRun::longest_delay() const {
  double slowest = 0, farthest = 0;
  for (const Port& port : ports_) slowest = std::max(slowest, port.per_byte);
  for (const Flow& flow : flows_) {
    farthest = std::max(farthest, flow.length * (flow.link_latency + 2 * slowest * transport_.header));
  }
  return (transport_.queue + 4.0 * burst_) * transport_.packet * slowest * 1.5 + 2 * farthest;
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
    times_.resent += burst_;
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
  times_.completion[packet.flow] =
      now + tail + flow.length * (flow.link_latency + transport_.header * per_byte);
  --open_;
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

}  // namespace

PacketFlowTimes run_packet_flows(const Fabric& fabric, const Transport& transport,
                                 std::span<const PacketFlow> flows, std::uint64_t seed) {
  return PacketRun(fabric, transport, seed).run(flows);
}

}  // namespace moebius
