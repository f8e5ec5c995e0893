#include "workloads/study/placement/volumes.h"

#include <array>
#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/schedule/work.h"

namespace moebius {
namespace {

// Of one class and role, in a step.
struct Sums {
  double calls = 0, around = 0, between = 0, sent = 0;
  double row_out = 0, row_back = 0;  // bytes of a token's row, over all dispatches and combines
  RoutePtr route;                    // the first
};
using SumsByRole = std::array<Sums, kNumGroupRoles>;

void add(const Op& op, const Fragment& fragment, int members, Sums& sums) {
  ++sums.calls;
  if (op.route >= 0) {
    (op.kind == OpKind::kDispatch ? sums.row_out : sums.row_back) += op.payload.value;
    if (!sums.route) sums.route = fragment.routes[op.route];
  } else if (op.kind == OpKind::kAllToAll) {
    sums.between += op.payload.value / members;
  } else if (op.kind == OpKind::kSend && members == 2) {
    sums.sent += op.payload.value;
  } else {
    sums.around += sent_bytes(op, fragment, members, 0);
  }
}

void add(const Submission& submission, const Layout& layout, SumsByRole& sums) {
  const RankClass& of = layout.classes[submission.rank_class];
  for (const Op& op : submission.fragment->ops) {
    if (!is_communication(op.kind) || is_host_copy(op.kind) || op.kind == OpKind::kRecv) continue;
    const auto members = static_cast<int>(of.group(op.group).ranks.size());
    if (members > 1) add(op, *submission.fragment, members, sums[static_cast<int>(op.group)]);
  }
}

TrainingJob one_step(const TrainingJob& job, bool fold) {
  TrainingJob step = job;
  step.plan.fold = fold;
  step.column_kinds.clear();
  step.speeds.reset();
  step.device_of_rank.clear();
  step.workload.first_step = 0;
  step.workload.steps = 1;
  return step;
}

// By class of the folded layout: a pipeline stage.
std::vector<SumsByRole> sums_of_step(const TrainingJob& job) {
  Training training(one_step(job, true));
  std::vector<SumsByRole> sums(training.layout().classes.size());
  while (!training.done()) {
    const std::optional<Submission> submission = training.next({});
    CHECK(submission.has_value(), "a submission waits for one that has completed");
    add(*submission, training.layout(), sums[submission->rank_class]);
    training.completed({submission->sequence, {}});
  }
  return sums;
}

// Once to each node of the route, to the member of the same index there, which hands it on: see
// route_traffic() of the simulator.
void add_routed(const Sums& sums, std::vector<VolumeEdge>& edges) {
  const Route& route = *sums.route;
  const auto add_both = [&](int from, int to, double tokens) {
    if (tokens <= 0 || from == to) return;
    edges.push_back({from, to, tokens * sums.row_out});
    edges.push_back({to, from, tokens * sums.row_back});
  };
  for (int source = 0; source < route.spec().ranks; ++source) {
    const int home = route.node_of(source);
    for (int node = 0; node < route.nodes(); ++node) {
      const int first = route.first_of_node(node), end = route.end_of_node(node);
      const int hub = node == home ? source : first + (source - route.first_of_node(home)) % (end - first);
      if (node != home) add_both(source, hub, route.tokens_to_node(source, node));
      for (int to = first; to < end; ++to) add_both(hub, to, route.tokens_between(source, to));
    }
  }
}

RankExchange exchange_of(const Group& group, GroupRole role, const Sums& sums) {
  RankExchange exchange{role, group.ranks, sums.calls, sums.around, sums.between, {}};
  if (sums.route) add_routed(sums, exchange.edges);
  return exchange;
}

}  // namespace

std::vector<RankExchange> exchanges_of(const TrainingJob& job) {
  CHECK(job.plan.ranks() <= kMostPlacedRanks, fmt::format("{} ranks", job.plan.ranks()));
  const std::vector<SumsByRole> sums = sums_of_step(job);
  const TrainingPlan plan = one_step(job, false).plan;
  const Layout layout = make_layout(plan);
  const int stage_size = layout.ranks / plan.pp;
  std::vector<RankExchange> exchanges;
  for (const RankClass& rank_class : layout.classes) {
    const std::int32_t rank = rank_class.representative();
    for (int i = 0; i < kNumGroupRoles; ++i) {
      const Group& group = rank_class.groups[i];
      const Sums& of = sums[rank / stage_size][i];
      const auto role = static_cast<GroupRole>(i);
      if (group.ranks.size() < 2 || of.calls == 0) continue;
      // Each group once, from its first member; a message from its sender.
      if (of.sent > 0)
        exchanges.push_back(
            {role, group.ranks, of.calls, 0, 0, {{group.my_index, 1 - group.my_index, of.sent}}});
      else if (group.my_index == 0)
        exchanges.push_back(exchange_of(group, role, of));
    }
  }
  return exchanges;
}

double total_bytes(const RankExchange& exchange) {
  const auto members = static_cast<double>(exchange.ranks.size());
  const double listed = std::accumulate(exchange.edges.begin(), exchange.edges.end(), 0.0,
                                        [](double sum, const VolumeEdge& edge) { return sum + edge.bytes; });
  return members * exchange.around + members * (members - 1) * exchange.between + listed;
}

}  // namespace moebius
