#include "workloads/training/pipeline/fragment_clock.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "workloads/cost/op_costs.h"
#include "workloads/schedule/work.h"

namespace moebius {
namespace {

// Pools and nodes are filled in order.
std::pair<int, int> node_of(const Cluster& cluster, int device) {
  for (std::size_t pool = 0; pool < cluster.pools.size(); ++pool) {
    if (device < cluster.pools[pool].devices())
      return {static_cast<int>(pool), device / cluster.pools[pool].node.accelerators};
    device -= cluster.pools[pool].devices();
  }
  return {-1, 0};
}

// Where communication has engines of its own, an op that leaves some cores to it has all.
int cores_of(const Op& op, const Accelerator& chip) {
  if (op.units < 0 && chip.independent_engines) return std::max(1, chip.cores);
  return op.units > 0 ? op.units : std::max(1, chip.cores + op.units);
}

// Of the expert group: of what they compute the slowest counts.
std::vector<std::int32_t> members_of(const RankClass& rank_class) {
  std::vector<std::int32_t> members(
      std::max<std::size_t>(1, rank_class.group(GroupRole::kExpert).ranks.size()));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

// Tokens of one rank go once to each other node, and there once to each rank that needs them.
double exchange_seconds(const Fragment& fragment, const Op& op, const FabricPool& part, double sent) {
  const Route& route = *fragment.routes[op.route];
  double across = 0;
  for (int node = 1; node < route.nodes(); ++node) across += route.tokens_to_node(0, node);
  const double nic = part.nic_rate.value > 0 ? across * op.payload.value / part.nic_rate.value : 0;
  return std::max(sent / part.link_rate.value, nic);
}

}  // namespace

const CostSource& FragmentClock::source(const Accelerator& chip) {
  std::unique_ptr<CostSource>& known = sources_[chip.id];
  if (!known) known = make_cost_source(chip);
  return *known;
}

int FragmentClock::members_of_node(const Group& group) const {
  const auto mine = node_of(cluster_, group.ranks[group.my_index]);
  return static_cast<int>(std::count_if(group.ranks.begin(), group.ranks.end(),
                                        [&](std::int32_t rank) { return node_of(cluster_, rank) == mine; }));
}

double FragmentClock::communication_seconds(const Fragment& fragment, const Op& op,
                                            const RankClass& rank_class, const Pool& pool) const {
  if (op.kind == OpKind::kSend || op.kind == OpKind::kRecv) return 0;
  const FabricPool part = part_of_fabric(pool, cluster_.fabric.spec());
  if (is_host_copy(op.kind)) return op.payload.value / part.host_rate.value + part.copy_latency.seconds();
  const Group& group = rank_class.group(op.group);
  const auto members = static_cast<int>(group.ranks.size());
  if (members < 2 || part.link_rate.value <= 0) return 0;
  const double sent = sent_bytes(op, fragment, members, group.my_index);
  if (op.route >= 0) return exchange_seconds(fragment, op, part, sent);
  // Over several nodes the members of one share the way out, each on its rail.
  const int inside = members_of_node(group);
  const bool leaves = inside < members && part.nic_rate.value > 0;
  const double latency = (members - 1) * part.link_latency.seconds();
  return latency + std::max(inside > 1 ? sent / part.link_rate.value : 0,
                            leaves ? sent / inside / part.nic_rate.value : 0);
}

double FragmentClock::seconds(const Fragment& fragment, const RankClass& rank_class, const Pool& pool) {
  const Accelerator& chip = pool.accelerator;
  DistinctCosts distinct;
  OpCosts costs(fragment, chip, source(chip), distinct, members_of(rank_class), cluster_.loader);
  std::array<double, kNumLanes> free{};
  std::vector<double> ends;
  for (const Op& op : fragment.ops) {
    double& lane = free[static_cast<int>(op.lane)];
    double begin = lane;
    for (int i = 0; i < op.num_dependencies; ++i)
      begin = std::max(begin, ends[fragment.dependencies[op.first_dependency + i]]);
    const auto index = static_cast<std::int32_t>(ends.size());
    lane = begin + (is_communication(op.kind) ? communication_seconds(fragment, op, rank_class, pool)
                                              : costs.at(index, cores_of(op, chip)).seconds);
    ends.push_back(lane);
  }
  return ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
}

}  // namespace moebius
