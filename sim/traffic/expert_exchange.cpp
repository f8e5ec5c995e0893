#include "sim/traffic/expert_exchange.h"

#include <algorithm>
#include <utility>

#include "workloads/cost/exchange_kernels.h"

namespace moebius {
namespace {

constexpr int kLowLatencyTokens = 128;

// Of a receiver: copies by expert for every token that comes to it.
double copies_of_token(const Route& route, int rank) {
  const int tokens = route.received_tokens(rank);
  return tokens > 0 ? static_cast<double>(route.rows_of_rank(rank)) / tokens : 0;
}

// Rows that leave a rank and that come to it.
struct Flow {
  double out = 0, in = 0;
  double most() const { return std::max(out, in); }
};
struct RankRows {
  double copies = 0;
  Flow inside, across, remote, linked;
};

// Directly from rank to rank. `packages`: by rank; empty: each has its own.
std::vector<RankRows> direct_rows(const Route& route, const std::vector<int>& packages) {
  const int ranks = route.spec().ranks;
  std::vector<RankRows> rows(ranks);
  for (int to = 0; to < ranks; ++to) {
    const double copies = copies_of_token(route, to);
    for (int from = 0; from < ranks; ++from) {
      const double sent = route.tokens_between(from, to) * copies;
      rows[from].copies += sent;
      if (from == to) continue;
      const auto kind = route.node_of(from) == route.node_of(to) ? &RankRows::inside : &RankRows::across;
      (rows[from].*kind).out += sent;
      (rows[to].*kind).in += sent;
      rows[from].remote.out += sent;
      rows[to].remote.in += sent;
      if (!packages.empty() && packages[from] == packages[to]) continue;
      rows[from].linked.out += sent;
      rows[to].linked.in += sent;
    }
  }
  return rows;
}

// Once to each node, handed on there by the member of the source's index, those of larger nodes in turns.
std::vector<RankRows> relayed_rows(const Route& route) {
  const int ranks = route.spec().ranks, nodes = route.nodes();
  std::vector<RankRows> rows(ranks);
  for (int from = 0; from < ranks; ++from)
    for (int node = 0; node < nodes; ++node) {
      const int first = route.first_of_node(node), last = route.end_of_node(node), home = route.node_of(from);
      const bool own = home == node;
      const int hub = own ? from : first + (from - route.first_of_node(home)) % (last - first);
      const double crossing = route.tokens_to_node(from, node);
      if (nodes > 1) rows[from].copies += crossing;
      if (!own) {
        rows[from].across.out += crossing;
        rows[hub].across.in += crossing;
      }
      for (int to = first; to < last; ++to) {
        const double sent = route.tokens_between(from, to);
        rows[from].copies += sent;
        if (to != from) {
          rows[from].remote.out += sent;
          rows[from].linked.out += sent;
        }
        if (to == hub) continue;
        rows[hub].inside.out += sent;
        rows[to].inside.in += sent;
      }
    }
  return rows;
}

// Of each member the first device of its package.
std::vector<int> packages_of(const GroupSites& group, const Fabric& fabric, int devices) {
  std::vector<int> packages;
  for (const Member& member : group.members)
    packages.push_back(member.device - fabric.standing(member.device).local % devices);
  return packages;
}

Traffic direct_traffic(const Op& op, const Route& route) {
  Traffic traffic;
  for (int to = 0; to < route.spec().ranks; ++to) {
    const double bytes = copies_of_token(route, to) * op.payload.value;
    for (int from = 0; from < route.spec().ranks; ++from) {
      if (from == to || route.tokens_between(from, to) == 0) continue;
      Edge edge{from, to, route.tokens_between(from, to) * bytes};
      if (op.kind == OpKind::kCombine) std::swap(edge.from, edge.to);
      traffic.edges.push_back(edge);
    }
  }
  return traffic;
}

ExchangeMachine machine_of_pool(const Op& op, const Pool& pool, const Cluster& cluster) {
  const FabricPool part = part_of_fabric(pool, cluster.fabric.spec());
  const double sharers = std::max(1, part.devices_per_nic);
  const ByteRate line = nic_line_rate(pool, cluster.fabric.spec());
  const double nics = 1.0 * pool.node.nics / pool.node.accelerators;  // of a device: its share, or several
  return {.cores = pool.accelerator.cores,
          .general = pool.accelerator.general_cores,
          .held = op.units,
          .link_line = pool.accelerator.link_rate.value,
          .link_rate = part.link_rate.value,
          .nic_line = line.value * nics,
          .nic_rate = part.nic_rate.value / sharers};
}

// Where members stand on several kinds of chip, what the first of them runs, over the slower of their wires.
ExchangeMachine machine_of(const Op& op, const GroupSites& group, const Cluster& cluster) {
  const Member& first = group.members.front();
  const Pool* last = &cluster.pool_of(first.device);
  ExchangeMachine machine = machine_of_pool(op, *last, cluster);
  for (const Member& member : group.members) {
    const Pool* pool = &cluster.pool_of(member.device);
    if (std::exchange(last, pool) == pool) continue;
    const ExchangeMachine other = machine_of_pool(op, *pool, cluster);
    machine.link_line = std::min(machine.link_line, other.link_line);
    machine.link_rate = std::min(machine.link_rate, other.link_rate);
    machine.nic_line = std::min(machine.nic_line, other.nic_line);
    machine.nic_rate = std::min(machine.nic_rate, other.nic_rate);
  }
  for (const Member& member : group.members)
    if (member.node != first.node)
      machine.latency =
          std::max(machine.latency, cluster.fabric.latency(first.device, member.device).seconds());
  return machine;
}

}  // namespace

ExchangeFamily exchange_family(const Op& op, const Route& route) {
  if (op.algorithm == Algorithm::kDirect) return ExchangeFamily::kLowLatency;
  if (op.algorithm == Algorithm::kHierarchical) return ExchangeFamily::kThroughput;
  int most = 0;
  for (int rank = 0; rank < route.spec().ranks; ++rank) most = std::max(most, route.tokens_of(rank));
  return most <= kLowLatencyTokens ? ExchangeFamily::kLowLatency : ExchangeFamily::kThroughput;
}

ExchangeLoad exchange_load(const Op& op, const Route& route, const ExchangeKernel& kernel,
                           const std::vector<int>& packages) {
  ExchangeLoad load{.ranks = route.spec().ranks,
                    .row_bytes = op.payload.value,
                    .nodes = route.nodes(),
                    .experts = route.spec().slots()};
  for (int rank = 0; rank < route.spec().ranks; ++rank)
    load.tokens = std::max<double>(load.tokens, route.tokens_of(rank));
  for (const RankRows& rows : goes_to_experts(kernel) ? direct_rows(route, packages) : relayed_rows(route)) {
    load.copies = std::max(load.copies, rows.copies);
    load.inside = std::max(load.inside, rows.inside.most());
    load.across = std::max(load.across, rows.across.most());
    load.remote_ranks = std::max(load.remote_ranks, rows.remote.most());
    load.linked = std::max(load.linked, rows.linked.most());
  }
  return load;
}

double all_to_all_rows(const Route& route) {
  const int ranks = route.spec().ranks;
  double most = 0;
  for (const RankRows& rows : direct_rows(route, {})) most = std::max(most, rows.remote.most());
  return ranks > 1 ? most * ranks / (ranks - 1) : 0;
}

double gathered_rows(const Route& route) {
  int most = 0;
  for (int rank = 0; rank < route.spec().ranks; ++rank) most = std::max(most, route.tokens_of(rank));
  return static_cast<double>(most) * route.spec().ranks;
}

Traffic expert_exchange(const Op& op, const Route& route, const GroupSites& group, const Cluster& cluster) {
  const ExchangeFamily family = exchange_family(op, route);
  const bool combine = op.kind == OpKind::kCombine;
  const ExchangeKernel kernel = exchange_kernel(cluster.pool_of(group.members.front().device).accelerator,
                                                {family, combine, route.nodes() > 1});
  Traffic traffic = goes_to_experts(kernel)
                        ? direct_traffic(op, route)
                        : route_traffic(route, combine, op.payload.value, group, cluster.fabric);
  if (traffic.edges.empty()) return traffic;
  const ExchangeMachine machine = machine_of(op, group, cluster);
  const ExchangeLoad of_chip =
      exchange_load(op, route, kernel, packages_of(group, cluster.fabric, kernel.package));
  const ExchangeLoad load = load_of_die(of_chip, kernel.dies);
  const ExchangeTime time = exchange_time(kernel, load, machine);
  traffic.latency = time.latency;
  traffic.least_seconds = time.flow;
  traffic.memory_bytes = exchange_memory(kernel, of_chip);
  // Libraries between attention and experts that stand apart have the CPU post (MegaScale-Infer, arXiv
  // 2504.02263, M2N).
  traffic.held = route.spec().without_experts > 0 ? 0 : time.held;
  return traffic;
}

}  // namespace moebius
