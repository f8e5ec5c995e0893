// Flows of a packet run: their ways through the fabric, their ends.
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
  ports_.push_back({.per_byte = share / fabric_.capacity(wire).value});
  slowest_ = std::max(slowest_, ports_.back().per_byte);
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

int PacketRun::path_of(const PacketFlow& flow, std::uint64_t hash, int paths) const {
  if (flow.path >= 0) return flow.path;
  if (fabric_.spec().routing == Routing::kStatic) return flow.to % paths;
  return static_cast<int>(hash % paths);
}

PacketRun::Ways PacketRun::new_ways(const PacketFlow& flow, int salt, int packets) {
  const Routing routing = fabric_.spec().routing;
  const bool many = routing == Routing::kSpray || routing == Routing::kAdaptive;
  const int entropies = flow.path >= 0 ? 1 : many ? transport_.entropies : fabric_.spec().queue_pairs;
  const int paths = fabric_.num_paths(flow.from, flow.to);
  Ways ways{static_cast<std::int32_t>(ways_.size()), paths == 1 ? 1 : std::min(entropies, packets), 0};
  const std::uint64_t key = random_bits(seed_, flow.from, flow.to, salt);
  there_.clear();
  back_.clear();
  for (int i = 0; i < ways.count; ++i) {
    const int out = path_of(flow, random_bits(key, i), paths);
    const std::int32_t there = route(flow.from, flow.to, out, there_);
    if (i == 0) ways.length = static_cast<std::int32_t>(hops_.size()) - there;
    const int home = static_cast<int>(random_bits(key, i, 1) % paths);
    ways_.push_back({there, route(flow.to, flow.from, home, back_)});
  }
  return ways;
}

PacketRun::Ways PacketRun::ways_of(const PacketFlow& flow, int salt, int packets) {
  if (salt >= 0) return new_ways(flow, salt, packets);
  const std::array key{flow.from, flow.to, flow.path, std::min(transport_.entropies, packets)};
  const auto [entry, fresh] = kept_ways_.try_emplace(key);
  if (fresh) entry->second = new_ways(flow, salt, packets);
  return entry->second;
}

// To its sender and its receiver: the first and the last port on its way.
void PacketRun::attach(Flow& flow) {
  const std::int32_t first = ways_[flow.first_way].there;
  const std::int32_t out = hops_[first], in = hops_[first + flow.length - 1];
  const auto [sender, new_sender] = sender_of_port_.try_emplace(out, std::ssize(senders_));
  if (new_sender) senders_.push_back({.port = out});
  const auto [receiver, new_receiver] = receiver_of_port_.try_emplace(in, std::ssize(receivers_));
  // A pull asks for `credit` bytes, not for a packet.
  const double spacing =
      ports_[in].per_byte * transport_.pull_spacing * transport_.packet / transport_.credit * burst_;
  if (new_receiver) receivers_.push_back({.spacing = spacing});
  flow.sender = sender->second;
  flow.receiver = receiver->second;
}

// In the calendar: for a full queue, or a header's way to the receiver and an answer's way back.
void PacketRun::make_room(const Flow& flow) {
  const double way = flow.length * (flow.link_latency + 2 * slowest_ * transport_.header);
  const double queue = (transport_.queue + 4.0 * burst_) * transport_.packet * slowest_ * 1.5;
  if (queue + 2 * way <= furthest_) return;
  furthest_ = queue + 2 * way;
  if (!calendar_) calendar_.emplace(ports_.front().per_byte * transport_.packet * burst_ / 2);
  calendar_->reach(furthest_);
}

std::int32_t PacketRun::add(const PacketFlow& given, int salt, double now) {
  CHECK(given.from != given.to && given.bytes > 0, "a flow between two devices, with bytes");
  Flow flow;
  const double packets = std::ceil(given.bytes / transport_.payload());
  flow.packets = static_cast<std::int32_t>(std::ceil(packets / burst_));
  flow.last_bytes =
      given.bytes + packets * transport_.header - (flow.packets - 1.0) * burst_ * transport_.packet;
  const Ways ways = ways_of(given, salt, flow.packets);
  flow.first_way = ways.first;
  flow.ways = ways.count;
  flow.length = ways.length;
  flow.link_latency = fabric_.latency(given.from, given.to).seconds() / flow.length;
  attach(flow);
  make_room(flow);
  flows_.push_back(flow);
  calendar_->skip(now);
  const auto index = static_cast<std::int32_t>(flows_.size()) - 1;
  queue_up(index, now);
  return index;
}

}  // namespace moebius
