#include "workloads/cost/nodes_tuner.h"

#include <algorithm>
#include <array>
#include <bit>

namespace moebius {
namespace {

// Rates in bytes per second, between 2 nodes and between more; by generation of chip, which the tuner's limit
// of LL inside a node tells. Between nodes LL's limit and the time to post a message go by the CPU: EPYC
// beside A100 in the makers' servers, Xeon (or Grace, which counts as one) beside what came later.
struct Generation {
  double ll_most;           // at least, inside a node
  double ll_between[2];     // llMaxBws
  double post;              // getNetOverhead, s; three times for Simple
  double ll128_ring;        // perChMaxRingLL128Bws
  double ll128_tree[2];     // perChMaxTreeLL128Bws
  double simple_tree[2];    // perChMaxTreeBws
  double simple_switch[2];  // perChMaxNVLSTreeBws
  bool doubles;             // channels: compute capability 9 on
  bool corrects_switch;     // by the table of trees: compute capability 10 beside x86
};
constexpr Generation kAmpere{0, {22.5e9, 19e9}, 2e-6, 20e9, {20e9, 20e9}, {23.6e9, 17.8e9}, {}, false, false};
constexpr Generation kHopper{100e9,          {39e9, 20.4e9},   1e-6, 36.7e9, {36.7e9, 29e9},
                             {41.4e9, 36e9}, {57.7e9, 45.5e9}, true, false};
constexpr Generation kBlackwell{200e9,          {39e9, 20.4e9}, 1e-6, 40e9, {31.67e9, 20e9},
                                {42.8e9, 24e9}, {96e9, 80e9},   true, true};

const Generation& generation_of(const NodesCall& call) {
  if (call.link.ll_most >= kBlackwell.ll_most) return kBlackwell;
  return call.link.ll_most >= kHopper.ll_most ? kHopper : kAmpere;
}

constexpr double kFastNic = 40e9, kFastestNic = 80e9;  // 400 Gb/s, 800 Gb/s

// Channels that the search through the topology finds, one for each NIC; two where the NIC is worth two of
// them and they are few. The tuner's limits of one channel count these: a call uses twice as many
// (nccl_channels).
double search_channels(const NodesCall& call) {
  const NodesPlace& place = call.place;
  const bool few = place.nics <= 4 || !generation_of(call).doubles;
  const bool two = place.nic_rate > kFastestNic || (place.nic_rate > kFastNic && few);
  return (two ? 2.0 : 1.0) * place.nics;
}

int scale_of(const NodesCall& call) {
  return call.place.nodes > 2 ? 1 : 0;
}

// Seconds: baseLatencies, hwLatencies.
struct Latencies {
  double base_ring, base_tree;
  double node_ring, node_tree;  // one step inside a node
  double pcie_ring, pcie_tree;
  double net_ring, net_tree;  // between nodes
};
constexpr Latencies kLL{6.6e-6, 6.8e-6, 0.6e-6, 0.6e-6, 1.0e-6, 1.0e-6, 2.7e-6, 5.0e-6};
constexpr Latencies kLL128{14.0e-6, 14.0e-6, 1.9e-6, 1.25e-6, 2.5e-6, 1.9e-6, 4.0e-6, 8.5e-6};
constexpr Latencies kSimple{8.4e-6, 8.4e-6, 3.4e-6, 4.0e-6, 5.7e-6, 4.0e-6, 14.0e-6, 14.0e-6};
constexpr double kSwitchStep = 25e-6, kSwitchNet = 20.9e-6;
constexpr double kSumNet = 18e-6, kChainSumNet = 30e-6;  // NVLS over CollNet; CollNetChain
// What an InfiniBand message took in the network of those tables: host and three switches, 3.7 us
// (DeepSeek-AI, Insights into DeepSeek-V3, ISCA 2025, table 5).
constexpr double kNetworkMessage = 3.7e-6;

const Latencies& latencies_of(Protocol protocol) {
  if (protocol == Protocol::kLL) return kLL;
  return protocol == Protocol::kLL128 ? kLL128 : kSimple;
}

// treeCorrectionFactor: share of a tree's rate that buffers of 64 B, 128 B, ... reach.
using Shares = std::array<double, 24>;
constexpr Shares kTreeLL{1,  1,  1,  1,  .9, .8, .7, .7, .7, .7, .6, .5,
                         .4, .4, .5, .6, .7, .8, .9, 1,  1,  1,  1,  1};
constexpr Shares kTreeLL128{1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
                            .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1,  1};
constexpr Shares kTreeSimple{.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                             .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9};
constexpr int kSizesOfTree = 23, kSizesOfSwitch = 24;  // larger buffers reach the whole rate

double share_of(const Shares& shares, int sizes, double bytes) {
  const int at = std::bit_width(static_cast<std::uint64_t>(bytes / 64)) - 1;
  return at >= 0 && at < sizes ? shares[static_cast<std::size_t>(at)] : 1;
}

double tree_share(Protocol protocol, double bytes) {
  if (protocol == Protocol::kLL) return share_of(kTreeLL, kSizesOfTree, bytes);
  return share_of(protocol == Protocol::kLL128 ? kTreeLL128 : kTreeSimple, kSizesOfTree, bytes);
}

// From 64 bytes for each device and channel on, rings of Simple wait longer.
double plateau(const NodesCall& call) {
  return call.call.bytes / (nccl_channels(call) * call.call.devices) >= 64 ? 1.4 : 1;
}

// `share` of one node's NICs together, no more than its link.
double bus_rate(const NodesCall& call, double share = 1) {
  const double nics = share * call.place.nics * call.place.nic_rate;
  return call.place.per_node > 1 && call.link.nominal > 0 ? std::min(nics, call.link.nominal) : nics;
}

double ring_estimate(const NodesCall& call, Protocol protocol) {
  const OpKind kind = call.call.kind;
  const double devices = call.call.devices, nodes = call.place.nodes;
  const double passes = kind == OpKind::kAllReduce ? 2 : 1;
  const Latencies& row = latencies_of(protocol);
  double rate = bus_rate(call);
  const Generation& generation = generation_of(call);
  if (protocol == Protocol::kLL) rate = std::min(rate / 2, generation.ll_between[scale_of(call)]);
  if (protocol == Protocol::kLL128)
    rate = std::min(0.92 * rate, generation.ll128_ring * search_channels(call));
  if (kind == OpKind::kBroadcast) {
    // Rings that enter a node at different devices: a step for each rank, of Simple as long as a tree's.
    const bool same_order = call.place.nics < 2;
    const double step = !same_order && protocol == Protocol::kSimple ? row.net_tree : row.net_ring;
    return row.base_ring + (same_order ? 1 : devices) * step + call.call.bytes / rate;
  }
  // Every step is posted; with one device a node its latency stands alone, as in a tree.
  const double post = (protocol == Protocol::kSimple ? 3 : 1) * generation.post;
  const double inside = std::max(post, call.link.own_ports ? row.node_ring : row.pcie_ring);
  const double between = call.place.per_node == 1 ? row.net_tree : row.net_ring;
  const double steps = passes * ((devices - nodes) * inside + (nodes - 1) * between);
  double latency = row.base_ring + steps;
  if (protocol == Protocol::kSimple && kind == OpKind::kAllReduce) latency *= plateau(call);
  return latency + passes * (devices - 1) / devices * call.call.bytes / rate;
}

double tree_estimate(const NodesCall& call, Protocol protocol) {
  const NodesPlace& place = call.place;
  const Latencies& row = latencies_of(protocol);
  const Generation& generation = generation_of(call);
  const int scale = scale_of(call);
  const double channels = search_channels(call);
  // Between two nodes data goes up one tree where it comes down the other.
  const double bus = bus_rate(call, place.nodes > 2 ? 1 : 2);
  double rate = std::min(0.92 * bus, channels * generation.simple_tree[scale]);
  if (protocol == Protocol::kLL) rate = std::min(rate / 3.8, generation.ll_between[scale]);
  if (protocol == Protocol::kLL128)
    rate = std::min(rate * 120 / 128, channels * generation.ll128_tree[scale]);
  const double step = call.link.own_ports ? row.node_tree : row.pcie_tree;
  const int depth = std::bit_width(static_cast<unsigned>(place.nodes)) - 1;
  return row.base_tree + 2 * ((place.per_node - 1) * step + depth * row.net_tree) +
         2 * call.call.bytes / (rate * tree_share(protocol, call.call.bytes));
}

// A channel for each device that is next to a NIC, one of them left out of what the switch of the node
// carries.
double in_switch_estimate(const NodesCall& call) {
  const NodesPlace& place = call.place;
  const Generation& generation = generation_of(call);
  const double heads = std::min(place.nics, place.per_node);
  const double inside = 2 * call.link.nominal * call.link.in_switch_share * (heads - 1) / heads;
  const double between = (place.nodes > 2 ? 1 : 2) * place.nics * place.nic_rate;
  double rate = std::min({inside, between, heads * generation.simple_switch[scale_of(call)]});
  if (generation.corrects_switch) rate *= share_of(kTreeSimple, kSizesOfSwitch, call.call.bytes);
  const int depth = std::bit_width(static_cast<unsigned>(place.nodes)) - 1;
  return kSwitchStep + 2 * depth * kSwitchNet + wire_bytes(call.call) / rate;
}

}  // namespace

int nccl_channels(const NodesCall& call) {
  const int channels = 2 * call.place.nics;
  const bool fast = generation_of(call).doubles && call.place.nic_rate > kFastNic;
  return std::clamp(fast && channels < 16 ? 2 * channels : channels, 2, 32);
}

double tree_channel_rate(const NodesCall& call, Protocol protocol) {
  const Generation& generation = generation_of(call);
  const int scale = scale_of(call);
  if (protocol == Protocol::kLL128) return generation.ll128_tree[scale];
  return generation.simple_tree[scale] / (protocol == Protocol::kLL ? 3.8 : 1);
}

double proxy_latency(Protocol protocol) {
  return latencies_of(protocol).net_tree - kNetworkMessage;
}

double post_latency(const NodesCall& call) {
  return generation_of(call).post;
}

double network_sum_latency(bool in_nodes) {
  return (in_nodes ? kSumNet : kChainSumNet) - kNetworkMessage;
}

bool uses_node_switches(const NodesCall& call) {
  return call.place.settings.in_switch && call.link.in_switch_share > 0 && call.place.per_node >= 8 &&
         call.place.nics >= 2 && call.call.devices == call.place.per_node * call.place.nodes;
}

std::vector<Algorithm> nccl_algorithms(const NodesCall& call) {
  if (call.call.kind == OpKind::kAllToAll) return {Algorithm::kRailLocal, Algorithm::kDirect};
  if (call.call.kind != OpKind::kAllReduce) return {Algorithm::kRing};
  if (uses_node_switches(call)) return {Algorithm::kTree, Algorithm::kRing, Algorithm::kInSwitch};
  return {Algorithm::kTree, Algorithm::kRing};
}

std::vector<Protocol> nccl_protocols(const NodesCall& call, Algorithm algorithm) {
  if (call.place.settings.simple_only || algorithm == Algorithm::kInSwitch) return {Protocol::kSimple};
  if (call.link.has_ll128 && call.call.kind != OpKind::kAllToAll)
    return {Protocol::kLL, Protocol::kLL128, Protocol::kSimple};
  return {Protocol::kLL, Protocol::kSimple};
}

double nccl_estimate(const NodesCall& call, Algorithm algorithm, Protocol protocol) {
  if (call.call.kind == OpKind::kAllToAll) {
    const bool few = call.call.bytes / call.call.devices <= 32 * 1024;
    return few == (protocol == Protocol::kLL) ? 0 : 1;
  }
  if (algorithm == Algorithm::kInSwitch) return in_switch_estimate(call);
  return algorithm == Algorithm::kTree ? tree_estimate(call, protocol) : ring_estimate(call, protocol);
}

Protocol nccl_protocol(const NodesCall& call, Algorithm algorithm) {
  const std::vector<Protocol> protocols = nccl_protocols(call, algorithm);
  return *std::min_element(protocols.begin(), protocols.end(), [&](Protocol a, Protocol b) {
    return nccl_estimate(call, algorithm, a) < nccl_estimate(call, algorithm, b);
  });
}

}  // namespace moebius
