#include "sim/traffic/library_calls.h"

#include <algorithm>
#include <cmath>

#include "sim/traffic/collectives.h"
#include "sim/traffic/library_cores.h"

namespace moebius {
namespace {

// On boards, of a chip whose constants are another's: nothing measured says what its library does with more.
constexpr int kMostByLikeness = 16;

bool is_library_call(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kAllGather || kind == OpKind::kReduceScatter ||
         kind == OpKind::kBroadcast || kind == OpKind::kAllToAll;
}

bool shares_a_domain(const GroupSites& group, const Cluster& cluster) {
  const Pool& pool = cluster.pool_of(group.members.front().device);
  if (group.nodes.size() > 1) return false;
  return (pool.node.scale_up == ScaleUp::kPcie) == (pool.accelerator.link_rate.value == 0);
}

// The members of a node stand on its boards in their order.
bool leaves_a_board(const std::vector<std::int32_t>& node, const GroupSites& group, const Fabric& fabric) {
  const int first = group.members[node.front()].device, last = group.members[node.back()].device;
  return fabric.distance(first, last) == Distance::kBoards;
}

// Seconds from one member of a node to the next: mean around its ring, and the longest way.
struct NodeLatency {
  double mean = 0, longest = 0;
};

NodeLatency latency_in(const std::vector<std::int32_t>& node, const GroupSites& group, const Fabric& fabric) {
  NodeLatency latency;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const int from = group.members[node[i]].device, to = group.members[node[(i + 1) % node.size()]].device;
    const double seconds = fabric.latency(from, to).seconds();
    latency.mean += seconds / static_cast<double>(node.size());
    latency.longest = std::max(latency.longest, seconds);
  }
  return latency;
}

// What the member that sends most to other boards takes for it on its share of the link.
double seconds_over_boards(const Traffic& traffic, const GroupSites& group, const Fabric& fabric) {
  std::vector<double> sent(group.members.size(), 0);
  double seconds = 0;
  for (const Edge& edge : traffic.edges) {
    const int from = group.members[edge.from].device, to = group.members[edge.to].device;
    if (fabric.distance(from, to) != Distance::kBoards) continue;
    sent[edge.from] += edge.bytes;
    seconds = std::max(seconds, sent[edge.from] / fabric.capacity({WireKind::kBoardOut, from}).value);
  }
  return seconds;
}

CollectiveFigures figures_of(const Accelerator& chip, const LinkConstants& link, const CollectiveCall& call,
                             CollectiveSource source) {
  if (const auto framework = framework_constants(chip, to_string(source)))
    return framework_figures(*framework, link, call);
  return nccl_figures(link, call);
}

// Of one algorithm, by the protocol that the tuner takes for it.
std::optional<CollectiveFigures> named_figures(const LinkConstants& link, const CollectiveCall& call,
                                               Algorithm named) {
  const bool exchange = call.kind == OpKind::kAllToAll;
  if (named == Algorithm::kDirect && exchange) return nccl_figures(link, call);
  if (named == Algorithm::kInSwitch && link.in_switch_share > 0 && call.kind == OpKind::kAllReduce &&
      call.devices >= kLeastInSwitch)
    return nccl_figures(link, call, Protocol::kInSwitch);
  if (named != Algorithm::kRing || exchange) return {};
  LinkConstants rings = link;
  rings.in_switch_share = 0;
  return nccl_figures(rings, call);
}

// What each member sends: in the switch the whole buffer once, one-shot the whole buffer to each other.
double sent_bytes(Protocol protocol, const CollectiveCall& call) {
  if (protocol == Protocol::kInSwitch) return call.bytes;
  if (protocol == Protocol::kOneShot) return call.bytes * (call.devices - 1);
  return wire_bytes(call);
}

// Rings, and what the switch reduces, load every member's wires alike, so that one round of neighbours
// stands for all; messages go to each.
Traffic neighbours(double sent, double most_rate, const GroupSites& group) {
  Traffic traffic;
  traffic.lockstep = true;
  traffic.most_rate = most_rate;
  for (const auto& node : group.nodes) {
    for (std::size_t i = 0; i < node.size(); ++i)
      traffic.edges.push_back({node[i], node[(i + 1) % node.size()], sent});
  }
  return traffic;
}

// From the root, which is member 0, to the last.
Traffic pipeline(double sent, double most_rate, const GroupSites& group) {
  Traffic traffic;
  traffic.lockstep = true;
  traffic.most_rate = most_rate;
  const std::vector<std::int32_t>& order = group.nodes.front();
  const auto root = static_cast<std::size_t>(std::find(order.begin(), order.end(), 0) - order.begin());
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    traffic.edges.push_back({order[(root + i) % order.size()], order[(root + i + 1) % order.size()], sent});
  return traffic;
}

Traffic messages(double sent, double most_rate, const GroupSites& group) {
  Traffic traffic;
  const int n = group.size();
  traffic.most_rate = most_rate / (n - 1);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      if (i != j) traffic.edges.push_back({i, j, sent / (n - 1)});
  return traffic;
}

// Rings of a full mesh take its members in different orders, so that each link has its part.
Traffic over_all_links(OpKind kind, double sent, double most_rate, const GroupSites& group) {
  Traffic traffic = messages(sent, most_rate, group);
  if (kind == OpKind::kBroadcast) std::erase_if(traffic.edges, [](const Edge& edge) { return edge.to == 0; });
  return traffic;
}

Traffic traffic_of(OpKind kind, const CollectiveFigures& figures, double sent, const GroupSites& group,
                   bool full_mesh) {
  if (full_mesh) return over_all_links(kind, sent, figures.most_rate, group);
  const bool to_each = kind == OpKind::kAllToAll || figures.protocol == Protocol::kOneShot ||
                       figures.protocol == Protocol::kTwoShot;
  if (to_each) return messages(sent, figures.most_rate, group);
  if (kind == OpKind::kBroadcast) return pipeline(sent, figures.most_rate, group);
  return neighbours(sent, figures.most_rate, group);
}

// SGLang starts NCCL with NCCL_NVLS_ENABLE=0 unless --enable-nccl-nvls is given (entrypoints/engine.py,
// _set_envs_and_config): what its own kernels leave goes round a ring. 8-bit sums, which no switch makes,
// measure that ring: 709 us for 128 MiB between eight H200, 565 in the switch.
bool sums_in_switch(CollectiveSource source) {
  return source != CollectiveSource::kSglang;
}

// What a member's links to the others of the group pass together.
double links_rate(const GroupSites& group, const Fabric& fabric) {
  std::vector<WireId> wires;
  fabric.route(group.members[0].device, group.members[1].device, wires);
  return (group.size() - 1) * fabric.capacity(wires.front()).value;
}

}  // namespace

bool stands_in_full_mesh(const GroupSites& group, const Cluster& cluster) {
  return cluster.pool_of(group.members.front().device).node.scale_up == ScaleUp::kFullMesh;
}

bool is_unlike_measured(const LinkConstants& link, const GroupSites& group, const Fabric& fabric) {
  return link.estimated && std::any_of(group.nodes.begin(), group.nodes.end(), [&](const auto& node) {
           return static_cast<int>(node.size()) > kMostByLikeness && leaves_a_board(node, group, fabric);
         });
}

std::optional<LinkConstants> links_of(const GroupSites& group, const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  auto link = link_constants(cluster.pool_of(group.members.front().device).accelerator);
  if (!link) return {};
  link->one_order = !stands_in_full_mesh(group, cluster);
  if (!sums_in_switch(cluster.collectives)) link->in_switch_share = 0;
  for (const auto& node : group.nodes) {
    const int first = group.members[node.front()].device;
    if (!fabric.reduces(first) || leaves_a_board(node, group, fabric)) link->in_switch_share = 0;
    const NodeLatency here = latency_in(node, group, fabric);
    link->neighbour_more = std::max(link->neighbour_more, here.mean - link->latency);
    link->message_more = std::max(link->message_more, here.longest - link->latency);
  }
  return link;
}

std::optional<LibraryCall> library_call(const CollectiveCall& call, const GroupSites& group,
                                        const Cluster& cluster, Algorithm named) {
  if (cluster.collectives == CollectiveSource::kStructure || !is_library_call(call.kind) ||
      call.devices < 2 || call.bytes <= 0 || !shares_a_domain(group, cluster))
    return {};
  const Accelerator& chip = cluster.pool_of(group.members.front().device).accelerator;
  const std::optional<LinkConstants> link = links_of(group, cluster);
  if (!link || is_unlike_measured(*link, group, cluster.fabric)) return {};
  const bool boards = leaves_a_board(group.nodes.front(), group, cluster.fabric);
  const bool full_mesh = stands_in_full_mesh(group, cluster);
  const std::optional<CollectiveFigures> known_figures =
      named == Algorithm::kAuto ? figures_of(chip, *link, call, cluster.collectives)
                                : named_figures(*link, call, named);
  if (!known_figures) return {};
  const CollectiveFigures& figures = *known_figures;
  const double sent = sent_bytes(figures.protocol, call);
  const bool by_engines =
      cluster.copy_engines && (call.kind == OpKind::kAllGather || call.kind == OpKind::kAllToAll);
  LibraryCall known{traffic_of(call.kind, figures, sent, group, full_mesh), sent, figures.most_rate,
                    figures.seconds, by_engines ? 0 : cores_of_call(chip, *link, call, figures.protocol)};
  const double over_boards = boards ? seconds_over_boards(known.traffic, group, cluster.fabric) : 0;
  if (over_boards > 0) limit_rate(known, sent / over_boards);
  if (full_mesh) limit_rate(known, links_rate(group, cluster.fabric));
  return known;
}

double library_start(const CollectiveCall& call, const Accelerator& chip, CollectiveSource source) {
  const auto framework = framework_constants(chip, to_string(source));
  if (framework && call.kind == OpKind::kAllReduce)
    return framework->launch + framework->doubling * std::log2(call.devices);
  const std::optional<LinkConstants> link = link_constants(chip);
  if (!link) return 0;
  return link->launch + (call.bytes > kManyLines ? link->launch_growth : 0);
}

void limit_rate(LibraryCall& call, double most_rate) {
  if (most_rate >= call.rate || call.rate <= 0) return;
  call.seconds += call.sent / most_rate - call.sent / call.rate;
  call.traffic.most_rate *= most_rate / call.rate;
  call.rate = most_rate;
}

}  // namespace moebius
