#include "workloads/study/search/least_seconds.h"

#include <algorithm>

#include "workloads/cost/op_costs.h"
#include "workloads/schedule/work.h"

namespace moebius {
namespace {

int cores_of(const Op& op, const Accelerator& chip, bool all_cores) {
  const int all = std::max(1, chip.cores);
  if (all_cores || (op.units < 0 && chip.independent_engines)) return all;
  return op.units > 0 ? std::min<int>(op.units, all) : std::max(1, all + op.units);
}

double over(double bytes, ByteRate rate) {
  return rate.value > 0 ? bytes / rate.value : 0;
}

}  // namespace

int LeastSeconds::inside(const Group& group) const {
  const int node = pool_.node.accelerators;
  return static_cast<int>(std::count_if(group.ranks.begin(), group.ranks.end(), [&](std::int32_t rank) {
    return rank / node == group.ranks.front() / node;
  }));
}

double LeastSeconds::of_message(const Op& op, const Group& group) const {
  const bool near = inside(group) == static_cast<int>(group.ranks.size());
  if (near || part_.nic_rate.value <= 0) return over(op.payload.value, part_.link_rate);
  return over(op.payload.value, part_.nic_rate);
}

double LeastSeconds::of_exchange(const Fragment& fragment, const Op& op, const Group& group) const {
  const Route& route = *fragment.routes[op.route];
  if (route.nodes() < 2) {
    const double sent = sent_bytes(op, fragment, static_cast<int>(group.ranks.size()), group.my_index);
    return over(sent, part_.link_rate);
  }
  double tokens = 0;
  for (int node = 1; node < route.nodes(); ++node) tokens += route.tokens_to_node(0, node);
  return over(tokens * op.payload.value, part_.nic_rate);
}

double LeastSeconds::of_collective(const Op& op, const Group& group) const {
  const auto members = static_cast<double>(group.ranks.size());
  const double near = std::max(1, inside(group)), nodes = members / near;
  const bool reduces = op.kind == OpKind::kAllReduce;
  const double twice = reduces && !cluster_.fabric.spec().reduces ? 2 : 1,
               on_link = reduces && !part_.reduces ? 2 : 1;
  const double link = over(on_link * (near - 1) / near * op.payload.value, part_.link_rate);
  const double out = op.kind == OpKind::kAllToAll ? (members - near) / members
                                                  : twice * std::max(0.0, nodes - 1) / nodes / near;
  return std::max(link, over(out * op.payload.value, part_.nic_rate));
}

double LeastSeconds::of_communication(const Fragment& fragment, const Op& op,
                                      const RankClass& rank_class) const {
  if (cluster_.exchange) return 0;
  if (is_host_copy(op.kind)) return over(op.payload.value, part_.host_rate);
  if (op.kind == OpKind::kRecv) return 0;  // its send's time
  const Group& group = rank_class.group(op.group);
  if (group.ranks.size() < 2) return 0;
  if (op.kind == OpKind::kSend) return of_message(op, group);
  if (op.route >= 0) return of_exchange(fragment, op, group);
  return of_collective(op, group);
}

std::vector<double> LeastSeconds::of(const Fragment& fragment, const RankClass& rank_class) const {
  DistinctCosts distinct;
  OpCosts costs(fragment, pool_.accelerator, costs_, distinct, {0}, cluster_.loader);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    if (costing_ == Costing::kExpertsAtPeak && is_grouped(op.kind)) {
      seconds.push_back(op_flops(op, fragment).value / pool_.accelerator.peak_of(op.dtype).value);
      continue;
    }
    seconds.push_back(is_communication(op.kind)
                          ? of_communication(fragment, op, rank_class)
                          : costs
                                .at(static_cast<std::int32_t>(i),
                                    cores_of(op, pool_.accelerator, costing_ != Costing::kAsPlanned))
                                .seconds);
  }
  return seconds;
}

}  // namespace moebius
