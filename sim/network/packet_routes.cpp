// Flows of a packet run: their ways through the fabric, their ends.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "hw/error.h"
#include "sim/network/packet_run.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

bool inside_node(WireKind kind) {
  constexpr std::array kInside{WireKind::kScaleUpOut, WireKind::kScaleUpIn, WireKind::kScaleUpPair,
                               WireKind::kBoardOut, WireKind::kBoardIn};
  return std::find(kInside.begin(), kInside.end(), kind) != kInside.end();
}

}  // namespace

std::int32_t PacketRun::port_of(WireId wire) {
  std::vector<std::int32_t>& ids = port_ids_[static_cast<std::size_t>(wire.kind)];
  if (ids.size() <= static_cast<std::size_t>(wire.index)) ids.resize(wire.index + 1, -1);
  std::int32_t& id = ids[wire.index];
  if (id >= 0) return id;
  id = static_cast<std::int32_t>(ports_.size());
  const double share = inside_node(wire.kind) ? 1 : fabric_.spec().transport_efficiency;
  const double per_byte = share / fabric_.capacity(wire).value;
  ports_.push_back(
      {.per_byte = per_byte, .packets_per_s = static_cast<float>(1 / (per_byte * transport_.packet))});
  slowest_ = std::max(slowest_, ports_.back().per_byte);
  return id;
}

// What leaves a node is sent by a NIC, which takes it from the memory of another device where that has the
// rail, and received by one, which puts it there: the wires between them are faster, and nothing is dropped
// on them.
std::int32_t PacketRun::route(int from, int to, int path, RailChange change) {
  wires_.clear();
  fabric_.route_by_ports(from, to, path, wires_, change);
  const auto nic =
      std::find_if(wires_.begin(), wires_.end(), [](const WireId& wire) { return !inside_node(wire.kind); });
  if (nic != wires_.end()) {
    wires_.erase(wires_.begin(), nic);
    while (inside_node(wires_.back().kind)) wires_.pop_back();
  }
  const auto first = static_cast<std::int32_t>(hops_.size());
  for (const WireId& wire : wires_) hops_.push_back(port_of(wire));
  return first;
}

int PacketRun::path_of(const PacketFlow& flow, std::uint64_t hash, int paths) const {
  if (flow.path >= 0) return flow.path;
  if (fabric_.spec().routing == Routing::kStatic) return flow.to % paths;
  return static_cast<int>(hash % paths);
}

PacketRun::Ways PacketRun::new_ways(const PacketFlow& flow, int salt, int packets) {
  const Routing routing = fabric_.spec().routing;
  const bool many = routing == Routing::kSpray || routing == Routing::kAdaptive;
  const int entropies = flow.path >= 0 ? 1 : many ? transport_.entropies : fabric_.spec().queue_pairs;
  // Of the paths of one port of the NICs every so many is one.
  const int ports = flow.nic_port >= 0 ? fabric_.spec().nic_ports : 1, port = std::max(0, flow.nic_port);
  const int paths = fabric_.num_paths(flow.from, flow.to, flow.change) / ports;
  int count = paths == 1 ? 1 : std::min(entropies, packets);
  if (adaptive_ && flow.path < 0) count = std::min(paths, kMostWays);
  Ways ways{static_cast<std::int32_t>(ways_.size()), count, 0, 0};
  const std::uint64_t key = random_bits(seed_, flow.from, flow.to, salt);
  known_.assign(paths, -1);
  for (int i = 0; i < ways.count; ++i) {
    const int path = adaptive_ && count == paths ? i : path_of(flow, random_bits(key, i), paths);
    // Entropies may be more than paths.
    if (known_[path] < 0) known_[path] = route(flow.from, flow.to, path * ports + port, flow.change);
    ways_.push_back(known_[path]);
  }
  ways.length = static_cast<std::int32_t>(wires_.size());
  const int back = fabric_.num_paths(flow.to, flow.from, flow.change) / ports;
  const int home = static_cast<int>(random_bits(key, 0, 1) % back);
  ways.back = route(flow.to, flow.from, home * ports + port, flow.change);
  CHECK(std::ssize(wires_) == ways.length, "a way back of as many ports");
  return ways;
}

PacketRun::Ways PacketRun::ways_of(const PacketFlow& flow, int salt, int packets) {
  if (salt >= 0) return new_ways(flow, salt, packets);
  const std::array key{flow.from,
                       flow.to,
                       flow.path,
                       std::min(transport_.entropies, packets),
                       static_cast<int>(flow.change),
                       flow.nic_port};
  const auto [entry, fresh] = kept_ways_.try_emplace(key);
  if (fresh) entry->second = new_ways(flow, salt, packets);
  return entry->second;
}

// To its sender and its receiver: the first and the last port on its way.
void PacketRun::attach(Outgoing& out, Incoming& in) {
  const std::int32_t first = ways_[out.first_way];
  const std::int32_t port = hops_[first], last = hops_[first + out.length - 1];
  const auto [sender, new_sender] = sender_of_port_.try_emplace(port, std::ssize(senders_));
  if (new_sender) senders_.push_back({.port = port});
  const auto [receiver, new_receiver] = receiver_of_port_.try_emplace(last, std::ssize(receivers_));
  if (new_receiver)
    receivers_.push_back({.spacing = ports_[last].per_byte * transport_.pull_spacing * burst_});
  out.sender = sender->second;
  in.receiver = receiver->second;
  ++receivers_[in.receiver].open;
}

// A NIC posts the messages of its flows in the order in which these begin, the first of a flow before its
// first packet, the others while it sends.
void PacketRun::pace(const PacketFlow& given, Outgoing& flow, double now) {
  if (given.most_rate > 0) flow.pace = transport_.payload() * burst_ / given.most_rate;
  const double each = fabric_.spec().message_time.seconds();
  if (given.messages <= 0 || each <= 0 || fabric_.node_of(given.from) == fabric_.node_of(given.to)) return;
  double& posted = senders_[flow.sender].posted_until;
  posted = std::max(posted, now);
  flow.due = posted + std::min(1.0, given.messages) * each;
  flow.pace = std::max(flow.pace, given.messages * each / flow.packets);
  posted += given.messages * each;
}

// In the calendar: for a full queue, or a header's way to the receiver and an answer's way back.
void PacketRun::make_room(const Outgoing& flow) {
  const double way = flow.length * (flow.latency + slowest_ * (2 * transport_.header + transport_.packet));
  const double queue = (transport_.queue + 4.0 * burst_) * transport_.packet * slowest_ * 1.5;
  if (queue + 2 * way <= furthest_) return;
  furthest_ = queue + 2 * way;
  if (!calendar_) calendar_.emplace(ports_.front().per_byte * transport_.packet * burst_ / 2);
  calendar_->reach(furthest_);
}

std::int32_t PacketRun::add(const PacketFlow& given, int salt, double now) {
  CHECK(given.from != given.to && given.bytes > 0, "a flow between two devices, with bytes");
  Outgoing flow;
  Incoming in;
  const double packets = std::ceil(given.bytes / transport_.payload());
  flow.packets = static_cast<std::int32_t>(std::ceil(packets / burst_));
  flow.last_bytes =
      given.bytes + packets * transport_.header - (flow.packets - 1.0) * burst_ * transport_.packet;
  const Ways ways = ways_of(given, salt, flow.packets);
  flow.first_way = ways.first;
  flow.ways = ways.count;
  flow.length = ways.length;
  flow.latency = fabric_.propagation(given.from, given.to, given.change).seconds() / flow.length;
  flow.unasked = window_;
  in.back = ways.back;
  attach(flow, in);
  pace(given, flow, now);
  make_room(flow);
  out_.push_back(flow);
  in_.push_back(in);
  ++open_;
  while (!calendar_->empty() && calendar_->next_time() <= now) handle(calendar_->pop());
  calendar_->skip(now);
  const auto index = static_cast<std::int32_t>(out_.size()) - 1;
  queue_up(index, now);
  return index;
}

}  // namespace moebius
