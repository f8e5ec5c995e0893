#include "sim/traffic/nodes_plans.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace moebius {
namespace {

constexpr int kMostRings = 32;  // that NCCL's search looks for: MAXCHANNELS / 2

bool is_nodes_call(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kAllGather || kind == OpKind::kReduceScatter ||
         kind == OpKind::kAllToAll || kind == OpKind::kBroadcast;
}

bool crosses_nodes(const GroupSites& group, const Cluster& cluster) {
  const FabricSpec& fabric = cluster.fabric.spec();
  if (group.nodes.size() < 2 || group.islands.size() > 1 || !fabric.by_host.empty()) return false;
  return std::all_of(group.members.begin(), group.members.end(), [&](const Member& member) {
    const Pool& pool = cluster.pool_of(member.device);
    return (pool.node.scale_up == ScaleUp::kPcie) == (pool.accelerator.link_rate.value == 0);
  });
}

// Those on the board of a node's first member.
int members_of_host(const std::vector<std::int32_t>& node, const GroupSites& group, const Fabric& fabric) {
  const int first = group.members[node.front()].device;
  return static_cast<int>(std::count_if(node.begin(), node.end(), [&](std::int32_t member) {
    return fabric.distance(first, group.members[member].device) != Distance::kBoards;
  }));
}

NodesPlace place_of(const GroupSites& group, const Fabric& fabric) {
  NodesPlace place;
  place.nodes = static_cast<int>(group.nodes.size());
  place.settings = library_settings(fabric.spec());
  const auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  std::set<int> nics;  // of the smallest node: rings and trees have no more rails in the others
  for (const std::int32_t member : *std::min_element(group.nodes.begin(), group.nodes.end(), smaller)) {
    const int nic = fabric.standing(group.members[member].device).nic;
    if (nics.insert(nic).second) place.nic_rate = fabric.capacity({WireKind::kNicOut, nic}).value;
  }
  place.nics = std::min(static_cast<int>(nics.size()), kMostRings);  // each enters and leaves by one
  place.proxies = static_cast<int>(nics.size());
  for (std::size_t i = 0; i < group.nodes.size(); ++i) {
    const auto &from = group.nodes[i], &to = group.nodes[(i + 1) % group.nodes.size()];
    const double seconds =
        fabric.latency(group.members[from.front()].device, group.members[to.front()].device).seconds();
    place.per_node = std::max(place.per_node, static_cast<int>(from.size()));
    place.per_host = std::max(place.per_host, members_of_host(from, group, fabric));
    place.message += seconds / place.nodes;
    place.farthest = std::max(place.farthest, seconds);
  }
  return place;
}

// All at once, chunk by chunk.
Traffic together(std::vector<Traffic> steps) {
  Traffic all = std::move(steps.front());
  if (steps.size() > 1) all.lockstep = false;
  for (std::size_t i = 1; i < steps.size(); ++i)
    all.edges.insert(all.edges.end(), steps[i].edges.begin(), steps[i].edges.end());
  return all;
}

std::vector<std::size_t> nodes_of_members(const GroupSites& group) {
  std::vector<std::size_t> nodes(group.members.size());
  for (std::size_t n = 0; n < group.nodes.size(); ++n)
    for (const std::int32_t member : group.nodes[n]) nodes[member] = n;
  return nodes;
}

// Channels take the members of a full mesh in different orders: what neighbours pass on in a node, all of its
// links do.
void spread_in_meshes(Traffic& traffic, const GroupSites& group) {
  std::vector<double> inside(group.nodes.size(), 0);
  const std::vector<std::size_t> node_of = nodes_of_members(group);
  std::erase_if(traffic.edges, [&](const Edge& edge) {
    if (edge.from < 0 || edge.to < 0 || node_of[edge.from] != node_of[edge.to]) return false;
    inside[node_of[edge.from]] += edge.bytes;
    return true;
  });
  for (std::size_t n = 0; n < group.nodes.size(); ++n) {
    const double k = static_cast<double>(group.nodes[n].size());
    for (const std::int32_t from : group.nodes[n])
      for (const std::int32_t to : group.nodes[n])
        if (from != to && inside[n] > 0) traffic.edges.push_back({from, to, inside[n] / (k * (k - 1))});
  }
}

// Of rings that are fewer than the NICs of a node: what leaves it has those of the rings alone.
double ring_nics_seconds(const Traffic& traffic, const GroupSites& group, const NodesPlace& place) {
  std::vector<double> leaves(group.nodes.size(), 0);
  const std::vector<std::size_t> node_of = nodes_of_members(group);
  for (const Edge& edge : traffic.edges) {
    if (edge.from >= 0 && edge.to >= 0 && node_of[edge.from] != node_of[edge.to])
      leaves[node_of[edge.from]] += edge.bytes;
  }
  return *std::max_element(leaves.begin(), leaves.end()) / (place.nics * place.nic_rate);
}

}  // namespace

std::optional<NodesCall> nodes_call(const CollectiveCall& call, const GroupSites& group,
                                    const Cluster& cluster) {
  if (cluster.collectives == CollectiveSource::kStructure || !is_nodes_call(call.kind) || call.bytes <= 0 ||
      !crosses_nodes(group, cluster))
    return {};
  const auto link = links_of(group, cluster);
  if (!link || link->one_protocol || is_unlike_measured(*link, group, cluster.fabric)) return {};
  return NodesCall{*link, place_of(group, cluster.fabric), call};
}

std::vector<Algorithm> NodesPlanner::algorithms(bool single_messages) const {
  std::vector<Algorithm> all = nccl_algorithms(call_);
  std::erase_if(all, [&](Algorithm algorithm) {
    return (single_messages && algorithm == Algorithm::kInSwitch) ||
           !what_lacks(algorithm, call_.call.kind, group_, fabric_).empty();
  });
  return all;
}

// The bytes of the protocol, without any latency.
Traffic NodesPlanner::traffic(Algorithm algorithm, Protocol protocol, bool in_network) const {
  CollectiveQuery query{.kind = call_.call.kind, .algorithm = algorithm, .bytes = call_.call.bytes};
  query.in_network = in_network;
  Traffic traffic = together(collective_traffic(query, group_, fabric_));
  const double overhead = protocol_overhead(protocol);
  const bool sends = call_.call.kind == OpKind::kAllToAll;
  const auto scale = [&](double& bytes) { bytes *= overhead; };
  for (Edge& edge : traffic.edges) {
    if (sends) edge.messages *= messages_of_send(edge.bytes, protocol);
    scale(edge.bytes);
  }
  for (Mesh& mesh : traffic.meshes) {
    for (double& messages : mesh.messages) messages *= messages_of_send(mesh.bytes, protocol);
    scale(mesh.bytes);
  }
  if (!sends) {
    if (full_mesh_) spread_in_meshes(traffic, group_);
    if (call_.place.nics == kMostRings)
      traffic.least_seconds = ring_nics_seconds(traffic, group_, call_.place);
  }
  traffic.latency = 0;
  traffic.hops = 0;
  traffic.least_seconds = std::max(
      {traffic.least_seconds, window_seconds(call_, algorithm, protocol),
       posting_seconds(call_, algorithm, protocol), host_bridge_seconds(call_)});
  return traffic;
}

// What the bytes take at least is in step.own, or, of single messages, beyond their wires in its latency: the
// chunks of a pipeline wait for it all the same.
NodesPlan NodesPlanner::plan(Algorithm algorithm) {
  const Protocol protocol = nccl_protocol(call_, algorithm);
  const Traffic bytes = traffic(algorithm, protocol, false);
  Step step = builder_.build(bytes, group_);
  const double flowing = step.alone - step.latency, data = std::max(step.own, bytes.least_seconds);
  const double besides = std::max(0.0, step.latency - (data - step.own));
  const double seconds = nodes_seconds(call_, algorithm, protocol, data) + besides;
  step.latency = std::max(0.0, seconds - step.own);
  step.alone = step.latency + flowing;
  const AlgorithmTime time{algorithm, step.latency + step.own, std::string(to_string(protocol))};
  planned_.push_back(time);
  return {time, std::move(step)};
}

AlgorithmTime NodesPlanner::time_of(Algorithm algorithm) {
  const auto known = std::find_if(planned_.begin(), planned_.end(),
                                  [&](const AlgorithmTime& time) { return time.algorithm == algorithm; });
  return known != planned_.end() ? *known : plan(algorithm).chosen;
}

// The bytes once up to the switches of the network and once down, after and before those of the nodes.
std::optional<NodesPlan> NodesPlanner::in_network(bool single_messages) {
  if (single_messages || !fabric_.spec().reduces || !may_sum_in_network(call_) ||
      !what_lacks(Algorithm::kInSwitch, call_.call.kind, group_, fabric_).empty())
    return {};
  Step step = builder_.build(traffic(Algorithm::kInSwitch, Protocol::kSimple, true), group_);
  const double beyond = std::max(0.0, network_sum_seconds(call_, step.own) - step.own);
  step.latency += beyond;
  step.alone += beyond;
  return NodesPlan{{Algorithm::kInSwitch, step.latency + step.own, "CollNet"}, std::move(step), true};
}

NodesPlan NodesPlanner::tuned(const std::vector<Algorithm>& algorithms) {
  if (call_.call.kind == OpKind::kAllToAll) {
    NodesPlan best = plan(algorithms.front());
    for (std::size_t i = 1; i < algorithms.size(); ++i) {
      NodesPlan other = plan(algorithms[i]);
      if (other.chosen.seconds < best.chosen.seconds) best = std::move(other);
    }
    return best;
  }
  const auto estimate = [&](Algorithm algorithm) {
    return nccl_estimate(call_, algorithm, nccl_protocol(call_, algorithm));
  };
  return plan(*std::min_element(algorithms.begin(), algorithms.end(),
                                [&](Algorithm a, Algorithm b) { return estimate(a) < estimate(b); }));
}

}  // namespace moebius
