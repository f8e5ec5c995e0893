#include "sim/traffic/transfer_plans.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/traffic/exchange_traffic.h"
#include "sim/traffic/expert_exchange.h"
#include "workloads/schedule/local_exchange.h"

namespace moebius {
namespace {

// The other member of a group of two: the receiver of a send, the sender of a receive.
std::int32_t other_member(const Group& group) {
  CHECK(group.ranks.size() == 2, fmt::format("a message in a group of {}", group.ranks.size()));
  return 1 - group.my_index;
}

int queue_of(const Op& op, const FabricSpec& fabric) {
  if (op.queue > 0) return op.queue;
  switch (op.lane) {
    case Lane::kTensorComm:
      return fabric.tensor_queue;
    case Lane::kExpertComm:
      return fabric.expert_queue;
    case Lane::kSendForward:
    case Lane::kRecvForward:
    case Lane::kSendBackward:
    case Lane::kRecvBackward:
      return fabric.pipeline_queue;
    case Lane::kDataComm:
      return fabric.data_queue;
    case Lane::kCompute:
    case Lane::kHostCopy:
      return 0;
  }
  return 0;
}

bool any_shared_wire_binds(const Fabric& fabric) {
  return fabric.can_bind(WireKind::kLeafUp) || fabric.can_bind(WireKind::kLeafDown) ||
         fabric.can_bind(WireKind::kPodUp) || fabric.can_bind(WireKind::kPodDown) ||
         fabric.can_bind(WireKind::kRegionLink);
}

}  // namespace

TransferPlans::TransferPlans(const Cluster& cluster, const Layout& layout, bool with_pairs,
                             std::uint64_t seed)
    : cluster_(cluster),
      layout_(layout),
      exchange_(cluster.exchange),
      sites_(cluster, layout),
      table_(cluster),
      paths_(cluster, seed),
      builder_(sites_, table_, paths_, with_pairs),
      with_pairs_(with_pairs),
      shared_wires_bind_(any_shared_wire_binds(cluster.fabric)) {
  if (cluster.ports_may_fail) builder_.keep_parts();
  std::map<std::pair<int, std::vector<std::int32_t>>, std::int32_t> ids;
  for (const RankClass& rank_class : layout.classes) {
    for (int role = 0; role < kNumGroupRoles; ++role) {
      const std::vector<std::int32_t>& ranks = rank_class.groups[role].ranks;
      const auto next = static_cast<std::int32_t>(ids.size());
      group_ids_.push_back(ranks.empty() ? -1 : ids.try_emplace({role, ranks}, next).first->second);
    }
  }
  group_sites_.resize(ids.size());
}

const GroupSites& TransferPlans::sites_of(std::int32_t id, const Group& group) {
  std::optional<GroupSites>& sites = group_sites_[id];
  if (!sites) sites = sites_.group(group.ranks);
  return *sites;
}

std::int64_t TransferPlans::meeting_place(const Op& op, int rank_class) const {
  if (op.kind != OpKind::kSend && op.kind != OpKind::kRecv) return group_id(rank_class, op.group);
  const Group& group = layout_.classes[rank_class].group(op.group);
  std::int64_t from = rank_class, to = layout_.class_of_rank[group.ranks[other_member(group)]];
  if (op.kind == OpKind::kRecv) std::swap(from, to);
  return -1 - (from << 31 | to);
}

std::shared_ptr<const TransferPlan> TransferPlans::plan(const Fragment& fragment, int index, int rank_class) {
  const Op& op = fragment.ops[index];
  const Group& group = layout_.classes[rank_class].group(op.group);
  const bool routed = op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine;
  const Route* route = routed ? fragment.routes[op.route].get() : nullptr;
  const Key key{group_id(rank_class, op.group),
                op.kind == OpKind::kSend ? group.my_index : -1,
                op.kind,
                op.algorithm,
                exchange_ ? copied_bytes(op, *exchange_) : op.payload.value,
                route,
                exchange_ ? op.num_inputs : 0,
                exchange_ ? op.dtype : DType::kBf16,
                static_cast<std::uint8_t>(queue_of(op, sites_.fabric().spec())),
                routed ? op.units : std::int16_t{0}};
  std::weak_ptr<const TransferPlan>& known = plans_[key];
  std::shared_ptr<const TransferPlan> plan = known.lock();
  if (!plan) {
    TransferPlan built = build(op, route, group, sites_of(key.group, group));
    for (Step& step : built.steps) {
      for (FlowClass& flow : step.flows) flow.queue = key.queue;
    }
    known = plan = std::make_shared<TransferPlan>(std::move(built));
  }
  return plan;
}

void TransferPlans::forget_unused() {
  std::erase_if(plans_, [](const auto& entry) { return entry.second.expired(); });
}

TransferPlan TransferPlans::steps_of(const std::vector<Traffic>& traffic, const GroupSites& sites) {
  TransferPlan plan;
  for (const Traffic& step : traffic) {
    if (!step.edges.empty()) plan.steps.push_back(builder_.build(step, sites));
  }
  return plan;
}

// Inside a node a message is a copy by the sender's device, and no copy is shorter than a kernel. Between nodes
// the NIC fetches it, which the fabric's host latency tells from the host's call on.
double TransferPlans::copy_start(const Member& from, const Member& to) const {
  if (from.node != to.node || from.device == to.device) return 0;
  return sites_.cluster().pool_of(from.device).accelerator.kernel_floor.seconds();
}

TransferPlan TransferPlans::build(const Op& op, const Route* route, const Group& group,
                                  const GroupSites& sites) {
  const Fabric& fabric = sites_.fabric();
  if (exchange_) return steps_of(exchange_traffic(op, route, group, *exchange_), sites);
  if (op.kind == OpKind::kSend) {
    const int from = group.my_index, to = other_member(group);
    Traffic message = message_traffic(from, to, op.payload.value, sites, fabric);
    message.latency += copy_start(sites.members[from], sites.members[to]);
    return steps_of({std::move(message)}, sites);
  }
  if (route == nullptr) return collective(op, sites);
  TransferPlan plan =
      steps_of({expert_exchange(op, *route, sites, cluster_)}, sites);
  if (!plan.steps.empty()) plan.slowest = static_cast<std::int16_t>(builder_.busiest_member(sites));
  return plan;
}

TransferPlan TransferPlans::collective(const Op& op, const GroupSites& sites) {
  CollectiveQuery query{op.kind, op.algorithm, op.payload.value, 1, !shared_wires_bind_ && !with_pairs_};
  if (op.algorithm != Algorithm::kAuto) return collective_by(query, sites);
  if (const auto call = library_call({op.kind, sites.size(), op.payload.value}, sites, cluster_))
    return TransferPlan{{step_of(*call, sites)}};
  std::optional<TransferPlan> best;
  for (const Algorithm algorithm : automatic_choices(op.kind, sites)) {
    query.algorithm = algorithm;
    TransferPlan plan = collective_by(query, sites);
    if (!best || plan.alone() < best->alone()) best = std::move(plan);
  }
  return std::move(*best);
}

// What the wires do not take of the model's time is latency. The native network's messages go as fast as
// their links let them: there it is all latency.
Step TransferPlans::step_of(const LibraryCall& call, const GroupSites& sites) {
  Traffic traffic = call.traffic;
  if (with_pairs_) traffic.most_rate = 0;
  Step step = builder_.build(traffic, sites);
  step.latency = std::max(0.0, call.seconds - step.alone);
  step.alone += step.latency;
  return step;
}

TransferPlan TransferPlans::collective_by(CollectiveQuery query, const GroupSites& sites) {
  const bool in_chunks = query.kind == OpKind::kBroadcast && query.algorithm == Algorithm::kRing;
  if (in_chunks && sites.size() > 2) query.chunks = best_chunks(query, sites);
  return steps_of(collective_traffic(query, sites, sites_.fabric()), sites);
}

// A pipeline of m chunks over h hops takes (m + h - 1) (latency + beta / m), least at m = sqrt((h - 1) beta /
// latency), with beta the seconds of the whole buffer over one hop.
int TransferPlans::best_chunks(const CollectiveQuery& query, const GroupSites& sites) {
  const double hops = sites.size() - 1;
  const TransferPlan whole = steps_of(collective_traffic(query, sites, sites_.fabric()), sites);
  const double latency = whole.steps.front().latency / hops;
  const double beta = (whole.steps.front().alone - whole.steps.front().latency) / hops;
  if (latency <= 0) return 1 << 20;
  return std::clamp(static_cast<int>(std::sqrt((hops - 1) * beta / latency)), 1, 1 << 20);
}

}  // namespace moebius
