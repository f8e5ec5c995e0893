#include "workloads/cost/nodes_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "hw/error.h"
#include "workloads/cost/nodes_tuner.h"

namespace moebius {
namespace {

// The step of a channel's buffer: LL 512 threads x 8 lines x 8 bytes of data; LL128 640 x 120 x 8, 120 of
// 128.
constexpr double kChunkLL = 32 * kKiB, kChunkLL128 = 576e3;
constexpr double kSwitchChunk = 128 * kKiB;  // NCCL_NVLS_CHUNKSIZE
// A channel more for each so many bytes: bytes a thread (8, 8, 64) x threads (512, 640, 512).
constexpr double kForChannelLL = 4 * kKiB, kForChannelLL128 = 5 * kKiB, kForChannelSimple = 32 * kKiB;
constexpr double kStepsOfBuffer = 8;        // NCCL_STEPS
constexpr double kSendChunk = 128 * kKiB;   // NCCL_P2P_NET_CHUNKSIZE
constexpr double kSendChunkLL = 16 * kKiB;  // data of half a step of its buffer
constexpr int kSendsOfChannel = 8;          // NCCL_MAX_DEV_WORK_P2P_PER_BATCH
constexpr int kPostedTogether = 8;          // NCCL_PROXY_MAX_SUBS
// Chunks of different channels and their latencies overlap, as inside a node.
constexpr double kOverlap = 2;

int depth_of(const NodesPlace& place) {
  return std::bit_width(static_cast<unsigned>(place.nodes)) - 1;
}

// The most that channels pass on at once, all together, and the bytes of one of them.
struct InFlight {
  double chunk = 0, bytes = 0;
};

double channels_in_use(const NodesCall& call, Protocol protocol) {
  const double each = protocol == Protocol::kLL      ? kForChannelLL
                      : protocol == Protocol::kLL128 ? kForChannelLL128
                                                     : kForChannelSimple;
  return std::clamp(std::floor(call.call.bytes / each), 1.0, 1.0 * nccl_channels(call));
}

// Halved while the chunks of a channel are fewer than `chunks`, down to `least`.
double cut(double chunk, double share, double chunks, double least) {
  while (share / chunk < chunks && chunk > least) chunk /= 2;
  return chunk;
}

double tree_chunk(const NodesCall& call, Protocol protocol, double share) {
  const NodesPlace& place = call.place;
  if (protocol == Protocol::kLL) return kChunkLL;
  if (protocol == Protocol::kLL128) {
    const double members = place.per_node, steps = 1 + depth_of(place) + 0.1 * members;
    return cut(cut(kChunkLL128, share, 64 * steps / members, 128 * kKiB), share, 16 * steps / members,
               32 * kKiB);
  }
  const double depth = place.per_node - 1 + depth_of(place);
  const double whole = place.settings.chunk;
  const double chunk = cut(cut(cut(whole, share, 8 * depth, 128 * kKiB), share, 4 * depth, 64 * kKiB), share,
                           depth, 32 * kKiB);
  return std::max(chunk, std::min(whole, place.settings.least_chunk));
}

InFlight in_flight_of(const NodesCall& call, Algorithm algorithm, Protocol protocol) {
  const double bytes = call.call.bytes;
  double channels = channels_in_use(call, protocol), chunk = call.place.settings.chunk;
  if (algorithm == Algorithm::kTree) chunk = tree_chunk(call, protocol, bytes / channels);
  if (algorithm == Algorithm::kRing && protocol == Protocol::kLL) chunk = kChunkLL;
  if (algorithm == Algorithm::kRing && protocol == Protocol::kLL128) chunk = kChunkLL128;
  if (algorithm == Algorithm::kInSwitch) {  // a chunk for each head: device of the node that reduces a part
    channels = 1.0 * nccl_channels(call) * std::min(call.place.per_node, kMostHeads);
    const double share = bytes / channels;
    chunk = share < 2 * kSwitchChunk / 8    ? kSwitchChunk / 8
            : share < 8 * kSwitchChunk / 4  ? kSwitchChunk / 4
            : share < 64 * kSwitchChunk / 2 ? kSwitchChunk / 2
                                            : kSwitchChunk;
  }
  chunk = std::min(chunk, bytes / channels);
  return {chunk, chunk * channels};
}

double together(double steps, double data) {
  return std::pow(std::pow(steps, kOverlap) + std::pow(data, kOverlap), 1 / kOverlap);
}

double node_step(const LinkConstants& link, Protocol protocol, double many) {
  if (protocol == Protocol::kLL) return link.step_ll + link.step_ll_growth * many + link.neighbour_more;
  return (protocol == Protocol::kLL128 ? link.step_ll128 : link.step_simple) + link.neighbour_more;
}

// Chunks wait at every hop until they are there whole. Up a chain in each node and a tree of nodes, and down
// again; half of the buffer by either tree, so that a hop between nodes carries half of a in_flight's data.
double tree_seconds(const NodesCall& call, Protocol protocol, double data, double many) {
  const NodesPlace& place = call.place;
  const double chain = 2.0 * (place.per_node - 1), climb = 2.0 * depth_of(place);
  const InFlight in_flight = in_flight_of(call, Algorithm::kTree, protocol);
  const double share = in_flight.bytes / call.call.bytes;
  const double filled = chain * in_flight.chunk / (tree_channel_rate(call, protocol) / 2) +
                        climb * data * share / 2 + data * (1 - share);
  return chain * node_step(call.link, protocol, many) + climb * (place.farthest + proxy_latency(protocol)) +
         filled;
}

// Every chunk goes over every device, most of the way inside nodes, while all others are on their way.
double ring_seconds(const NodesCall& call, Protocol protocol, double data, double many) {
  const int passes = call.call.kind == OpKind::kAllReduce ? 2 : 1;
  const double between = passes * (call.place.nodes - 1.0);
  const double inside = passes * (call.call.devices - 1.0) - between;
  const double steps = inside * node_step(call.link, protocol, many) +
                       between * (call.place.message + proxy_latency(protocol));
  return together(steps, data);
}

// One after the other from the root to the last. Inside a node a device passes on what it gets as it comes:
// between 8 H800 16 MiB take 123 us, of which 102 are the bytes. A proxy posts a chunk when it is whole.
double broadcast_seconds(const NodesCall& call, Protocol protocol, double data, double many) {
  const NodesPlace& place = call.place;
  const double between = place.nodes - 1.0, inside = call.call.devices - 1.0 - between;
  const InFlight in_flight = in_flight_of(call, Algorithm::kRing, protocol);
  const double share = in_flight.bytes / call.call.bytes;
  return inside * node_step(call.link, protocol, many) +
         between * (place.message + proxy_latency(protocol) + data * share) + data * (1 - share);
}

// What the switch of each node takes for the bytes that it reduces and multiplies.
double node_switch_seconds(const NodesCall& call) {
  return call.call.bytes / call.link.rate_in_switch + call.link.spread * std::sqrt(call.call.bytes);
}

// The switch of each node reduces and multiplies while the tree of nodes goes on.
double in_switch_seconds(const NodesCall& call, double data) {
  const LinkConstants& link = call.link;
  const double climb = 2.0 * depth_of(call.place), bytes = call.call.bytes;
  const double share = in_flight_of(call, Algorithm::kInSwitch, Protocol::kSimple).bytes / bytes;
  const double steps = in_switch_step(link) +
                       climb * (call.place.farthest + proxy_latency(Protocol::kSimple) + data * share / 2);
  return together(steps, std::max(data, node_switch_seconds(call)));
}

// PXN: over the links of a node to the member beside the NIC.
bool goes_by_rail(const NodesCall& call, Algorithm algorithm) {
  return algorithm == Algorithm::kRailLocal && call.link.own_ports && call.place.per_node > 1;
}

double bytes_to_each(const NodesCall& call) {
  return call.call.bytes / call.call.devices;
}

// A message leaves when its chunk is copied whole, and the last one is copied after it came. Each send and
// each receive of a channel has its part of the warps for all the time: one of either 18.4 GB/s on H100 (a
// channel of GH200 was measured to send 18.3: NVIDIA/nccl issue 1272), eight 2.3 each. LL writes a flag
// beside each word.
double chunk_copies_seconds(const NodesCall& call, Protocol protocol) {
  if (call.link.channel_copy <= 0) return 0;
  const double sends = std::min(kSendsOfChannel, call.place.per_node);
  const double rate = call.link.channel_copy / (2 * sends);
  const double bytes = bytes_to_each(call);
  return 2 * std::min(bytes, send_chunk(bytes, protocol)) * protocol_overhead(protocol) / rate;
}

}  // namespace

double protocol_overhead(Protocol protocol) {
  if (protocol == Protocol::kLL) return 2;
  return protocol == Protocol::kLL128 ? 128.0 / 120 : 1;
}

double window_seconds(const NodesCall& call, Algorithm algorithm, Protocol protocol) {
  if (call.call.kind == OpKind::kAllToAll) return 0;
  const InFlight in_flight = in_flight_of(call, algorithm, protocol);
  if (in_flight.chunk <= 0) return 0;
  const double devices = call.call.devices;
  const bool whole = call.call.kind == OpKind::kBroadcast || algorithm != Algorithm::kRing;
  const double passes = call.call.kind == OpKind::kAllReduce ? 2 : 1;
  const double hop = call.call.bytes * (whole ? 1 : passes * (devices - 1) / devices);
  const double windows = hop / (kStepsOfBuffer * in_flight.bytes);
  return std::max(0.0, windows - 1) * (2 * call.place.farthest + proxy_latency(protocol));
}

double host_bridge_seconds(const NodesCall& call) {
  if (call.link.own_ports || call.place.per_node < 2) return 0;
  return wire_bytes(call.call) / library_rate(call.link, call.place.per_node);
}

double send_chunk(double bytes, Protocol protocol) {
  if (protocol == Protocol::kLL) return kSendChunkLL;
  if (bytes < kSendChunk) return kSendChunk / 4;
  return bytes < 8 * kSendChunk ? kSendChunk / 2 : kSendChunk;
}

// Of the busiest proxy of a node; the first message's posting is in proxy_latency().
double posting_seconds(const NodesCall& call, Algorithm algorithm, Protocol protocol) {
  if (call.call.kind != OpKind::kAllToAll) return 0;
  const NodesPlace& place = call.place;
  const bool by_rail = goes_by_rail(call, algorithm);
  const double senders = by_rail ? std::max(1.0, 1.0 * place.per_node / place.proxies) : 1;
  const double bytes = bytes_to_each(call), peers = call.call.devices - place.per_node;
  const double messages = senders * peers * std::ceil(bytes / send_chunk(bytes, protocol));
  const double posted = by_rail ? std::min(kPostedTogether, place.per_host) : 1;
  const double others = protocol == Protocol::kSimple ? 2 : 1;  // receive, flush
  return std::max(0.0, messages - 1) * post_latency(call) * (1 + others / posted);
}

double messages_of_send(double bytes, Protocol protocol) {
  return std::max(1.0, std::ceil(bytes * protocol_overhead(protocol) / kSendChunk));
}

bool may_sum_in_network(const NodesCall& call) {
  if (call.call.kind != OpKind::kAllReduce && call.call.kind != OpKind::kReduceScatter) return false;
  return call.call.devices > 2 && (call.place.per_node == 1 || uses_node_switches(call));
}

double network_sum_seconds(const NodesCall& call, double data) {
  const bool in_nodes = call.place.per_node > 1;
  const double many = call.call.bytes / (call.call.bytes + kManyLines);
  const double launch = call.link.launch + call.link.launch_growth * many;
  const double share = in_flight_of(call, Algorithm::kInSwitch, Protocol::kSimple).bytes / call.call.bytes;
  const double steps = (in_nodes ? in_switch_step(call.link) : 0) + call.place.farthest +
                       network_sum_latency(in_nodes) + data * share;
  return launch + together(steps, in_nodes ? std::max(data, node_switch_seconds(call)) : data);
}

double nodes_seconds(const NodesCall& call, Algorithm algorithm, Protocol protocol, double data) {
  const double many = call.call.bytes / (call.call.bytes + kManyLines);
  const double launch = call.link.launch + call.link.launch_growth * many;
  if (call.call.kind == OpKind::kAllToAll) {  // all at once; peers share the channels, as inside a node
    const double rail = algorithm == Algorithm::kRailLocal ? call.link.message_more : 0;
    return launch + call.link.step_ll * std::log2(call.call.devices) + rail + call.place.farthest +
           proxy_latency(protocol) + chunk_copies_seconds(call, protocol) + data;
  }
  if (call.call.kind == OpKind::kBroadcast) return launch + broadcast_seconds(call, protocol, data, many);
  if (algorithm == Algorithm::kInSwitch) return launch + in_switch_seconds(call, data);
  if (algorithm == Algorithm::kTree) return launch + tree_seconds(call, protocol, data, many);
  CHECK(algorithm == Algorithm::kRing, std::string(to_string(algorithm)));
  return launch + ring_seconds(call, protocol, data, many);
}

}  // namespace moebius
