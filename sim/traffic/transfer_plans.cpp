#include "sim/traffic/transfer_plans.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/network/message_start.h"
#include "sim/traffic/exchange_traffic.h"
#include "sim/traffic/expert_exchange.h"
#include "sim/traffic/host_copies.h"
#include "sim/traffic/library_cores.h"
#include "sim/traffic/nodes_plans.h"
#include "sim/traffic/wire_uses.h"
#include "workloads/cost/clock_power.h"
#include "workloads/schedule/context_part.h"
#include "workloads/schedule/local_exchange.h"
#include "workloads/schedule/peer.h"

namespace moebius {
namespace {

constexpr std::size_t kMostDecided = 4096;
constexpr int kMostInPairs = 64;  // members

// The receiver of a send, the sender of a receive.
std::int32_t other_member(const Op& op, const Group& group) {
  return peer_of(op, group.my_index, static_cast<std::int64_t>(group.ranks.size()));
}

// Whose message it is, and whose not.
int message_of(const Op& op, const Group& group) {
  if (op.kind != OpKind::kSend) return -1;
  return group.my_index * static_cast<int>(group.ranks.size()) + other_member(op, group);
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
    case Lane::kHostStore:
    case Lane::kLoader:
      return 0;
  }
  return 0;
}

// Dispatch or combine as the library's all-to-all, which takes as many channels as it likes.
Op all_to_all_of(const Op& exchange, const Route& route) {
  Op op = exchange;
  op.kind = OpKind::kAllToAll;
  op.algorithm = Algorithm::kAuto;
  op.units = 0;
  op.payload = {all_to_all_rows(route) * exchange.payload.value};
  return op;
}

// Dispatch as the library's gather of all tokens, combine as its reduce-scatter of their sums.
Op gather_of(const Op& exchange, const Route& route) {
  Op op = exchange;
  op.kind = exchange.kind == OpKind::kCombine ? OpKind::kReduceScatter : OpKind::kAllGather;
  op.algorithm = Algorithm::kAuto;
  op.units = 0;
  op.payload = {gathered_rows(route) * exchange.payload.value};
  return op;
}

// A kernel that copies through the memory of each member's chip.
TransferPlan by_library(const CollectiveQuery& query, Step step, int cores, int members) {
  TransferPlan plan{{std::move(step)}};
  plan.cores = static_cast<std::int16_t>(cores);
  if (plan.flowing() > 0) plan.memory_bytes = bytes_of_transfer(query.kind, query.bytes, members);
  return plan;
}

}  // namespace

TransferPlans::TransferPlans(const Cluster& cluster, const Layout& layout, const PlanOptions& options)
    : cluster_(cluster),
      layout_(layout),
      exchange_(cluster.exchange),
      sites_(cluster, layout),
      table_(cluster),
      paths_(cluster, options.seed),
      builder_(sites_, table_, paths_, options.with_pairs),
      with_pairs_(options.with_pairs),
      choices_(options.choices) {
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

const GroupSites& TransferPlans::sites_of(std::int32_t id, const Group& group, int rank_class) {
  std::optional<GroupSites>& sites = group_sites_[id];
  if (!sites) sites = sites_.group(group, layout_.classes[rank_class]);
  return *sites;
}

std::int64_t TransferPlans::meeting_place(const Op& op, int rank_class) const {
  if (op.kind != OpKind::kSend && op.kind != OpKind::kRecv) return group_id(rank_class, op.group);
  const Group& group = layout_.classes[rank_class].group(op.group);
  std::int64_t from = rank_class, to = layout_.class_of_rank[group.ranks[other_member(op, group)]];
  if (op.kind == OpKind::kRecv) std::swap(from, to);
  return -1 - (from << 31 | to);
}

std::shared_ptr<const TransferPlan> TransferPlans::plan(const Fragment& fragment, int index, int rank_class) {
  const Op& op = fragment.ops[index];
  if (is_host_copy(op.kind))
    return std::make_shared<TransferPlan>(host_copy(op, rank_class, sites_, table_, !with_pairs_));
  const Group& group = layout_.classes[rank_class].group(op.group);
  const bool routed = op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine;
  const Route* route = routed ? fragment.routes[op.route].get() : nullptr;
  const Key key{group_id(rank_class, op.group),
                message_of(op, group),
                op.kind,
                op.algorithm,
                exchange_ ? copied_bytes(op, *exchange_) : op.payload.value,
                exchange_ ? 0 : op.units,
                route,
                op.kind == OpKind::kAllToAll ? fragment.pair_bytes.get() : nullptr,
                exchange_ ? std::max(op.num_inputs, op.num_outputs) : 0,
                exchange_ ? op.dtype : DType::kBf16,
                static_cast<std::uint8_t>(queue_of(op, sites_.fabric().spec())),
                is_ring_shift(op)};
  std::weak_ptr<const TransferPlan>& known = plans_[key];
  std::shared_ptr<const TransferPlan> plan = known.lock();
  if (!plan) {
    TransferPlan built = build(op, key, group, sites_of(key.group, group, rank_class));
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
    if (!step.empty()) plan.steps.push_back(builder_.build(step, sites));
  }
  return plan;
}

// Inside a node a message is a copy by the sender's device, and no copy is shorter than a kernel. Between
// nodes the NIC fetches it, which the fabric's host latency tells from the host's call on.
double TransferPlans::copy_start(const Member& from, const Member& to) const {
  if (from.node != to.node || from.device == to.device) return 0;
  return sites_.cluster().pool_of(from.device).accelerator.kernel_floor.seconds();
}

TransferPlan TransferPlans::build(const Op& op, const Key& key, const Group& group, const GroupSites& sites) {
  const Fabric& fabric = sites_.fabric();
  if (exchange_) return steps_of(exchange_traffic(op, key.route, group, *exchange_), sites);
  if (op.kind == OpKind::kSend) {
    const int from = group.my_index, to = other_member(op, group);
    Traffic message = message_traffic(from, to, op.payload.value, sites, fabric);
    message.latency += copy_start(sites.members[from], sites.members[to]);
    if (!with_pairs_) {
      const int sender = sites.members[from].device, receiver = sites.members[to].device;
      const double start = start_of_message(fabric, sender, receiver, op.payload.value);
      message.latency = std::max(0.0, message.latency + start);
    }
    return steps_of({std::move(message)}, sites);
  }
  if (key.route == nullptr) return collective(op, key, sites);
  if (op.algorithm == Algorithm::kLibrary) return collective(all_to_all_of(op, *key.route), key, sites);
  if (op.algorithm == Algorithm::kRing) return collective(gather_of(op, *key.route), key, sites);
  const Traffic exchange = expert_exchange(op, *key.route, sites, cluster_);
  TransferPlan plan = steps_of({exchange}, sites);
  if (plan.flowing() > 0) plan.memory_bytes = exchange.memory_bytes;
  plan.held = std::min(exchange.held, plan.alone());
  if (!plan.steps.empty()) plan.slowest = static_cast<std::int16_t>(builder_.busiest_member(sites));
  return plan;
}

TransferPlan TransferPlans::collective(const Op& op, const Key& key, const GroupSites& sites) {
  CollectiveQuery query{.kind = op.kind, .algorithm = op.algorithm, .bytes = op.payload.value};
  const PairBytes ring = key.ring ? bytes_round_ring(sites.size(), op.payload.value) : PairBytes{};
  query.matrix = key.ring ? &ring : key.pairs;
  const int channels = std::max<int>(0, op.units);
  query.most_sent = channels * sites_.channel_rate(sites);
  CollectiveChoice choice{op.kind,  op.group,        sites.size(), static_cast<int>(sites.nodes.size()),
                          channels, op.payload.value};
  choice.automatic = op.algorithm == Algorithm::kAuto;
  if (const auto known = decided_.find(key); known != decided_.end()) query.algorithm = known->second;
  TransferPlan plan;
  bool by_structure = query.algorithm != Algorithm::kAuto;
  if (auto named = choice.automatic ? std::nullopt : named_by_library(query, sites, choice)) {
    plan = std::move(*named);
    by_structure = false;
  } else if (by_structure) {
    plan = steps_of(collective_traffic(query, sites, sites_.fabric()), sites);
  } else if (op.units < 0) {
    plan = without_library(op, query, sites, choice);
  } else if (auto call = library_plan(query, sites)) {
    plan = std::move(*call);
  } else if (auto tuned = plan_between_nodes(query, sites, choice)) {
    plan = std::move(*tuned);
  } else {
    plan = fastest(query, sites, choice);
    if (decided_.size() >= kMostDecided) decided_.clear();
    if (query.algorithm != Algorithm::kAuto) decided_[key] = query.algorithm;
    by_structure = true;
  }
  // Decided before or now, the kernels are a library's all the same.
  if (by_structure && op.units == 0 && op.algorithm == Algorithm::kAuto &&
      cluster_.collectives != CollectiveSource::kStructure)
    start_by_library(plan, query, sites, choice);
  if (query.matrix != nullptr && !plan.steps.empty())
    plan.slowest = static_cast<std::int16_t>(builder_.busiest_member(sites));
  choice.by_structure = by_structure || op.units < 0;
  choice.with_library = by_structure && cluster_.collectives != CollectiveSource::kStructure;
  choice.chosen.algorithm = query.algorithm;
  choice.chosen.seconds = plan.by_itself();
  note(query, sites, std::move(choice));
  return plan;
}

// A library's kernels on links whose structure tells the steps.
void TransferPlans::start_by_library(TransferPlan& plan, const CollectiveQuery& query,
                                     const GroupSites& sites, CollectiveChoice& choice) const {
  plan.cores = static_cast<std::int16_t>(cores_of_members(query, sites, cluster_));
  if (plan.steps.empty() || sites.size() < 2 || query.bytes <= 0) return;
  const Accelerator& chip = cluster_.pool_of(sites.members.front().device).accelerator;
  const double start = library_start({query.kind, sites.size(), query.bytes}, chip, cluster_.collectives);
  plan.steps.front().latency += start;
  plan.steps.front().alone += start;
  for (auto& candidate : choice.candidates) candidate.seconds += start;
}

// Inside a scale-up domain, with channels and parts as the library has them.
std::optional<TransferPlan> TransferPlans::library_plan(const CollectiveQuery& query,
                                                        const GroupSites& sites) {
  if (query.matrix != nullptr) return {};
  auto call = library_call({query.kind, sites.size(), query.bytes}, sites, cluster_);
  if (!call) return {};
  if (query.most_sent > 0) limit_rate(*call, query.most_sent);
  return by_library(query, step_of(*call, sites), call->cores, sites.size());
}

// Where a scenario asks for the library's own of what it names.
std::optional<TransferPlan> TransferPlans::named_by_library(CollectiveQuery& query, const GroupSites& sites,
                                                            CollectiveChoice& choice) {
  const CollectiveCall size{query.kind, sites.size(), query.bytes};
  if (!cluster_.library_as_named || query.matrix != nullptr || sites.size() < 2) return {};
  if (auto call = library_call(size, sites, cluster_, query.algorithm)) {
    if (query.most_sent > 0) limit_rate(*call, query.most_sent);
    return by_library(query, step_of(*call, sites), call->cores, sites.size());
  }
  const auto call = nodes_call(size, sites, cluster_);
  if (!call || query.most_sent > 0) return {};
  NodesPlanner planner(*call, sites, cluster_, builder_);
  const std::vector<Algorithm> algorithms = planner.algorithms(with_pairs_);
  if (std::find(algorithms.begin(), algorithms.end(), query.algorithm) == algorithms.end()) return {};
  NodesPlan plan = planner.plan(query.algorithm);
  query.in_network = false;
  choice.chosen = plan.chosen;
  const Accelerator& chip = cluster_.pool_of(sites.members.front().device).accelerator;
  return by_library(query, std::move(plan.step), cores_of_call(chip, *call), sites.size());
}

// Between nodes, by the library's tuner; sets the query's algorithm. Those that it does not take are looked
// at for the report alone.
std::optional<TransferPlan> TransferPlans::plan_between_nodes(CollectiveQuery& query, const GroupSites& sites,
                                                              CollectiveChoice& choice) {
  if (query.matrix != nullptr || query.most_sent > 0) return {};
  const auto call = nodes_call({query.kind, sites.size(), query.bytes}, sites, cluster_);
  if (!call) return {};
  NodesPlanner planner(*call, sites, cluster_, builder_);
  const std::vector<Algorithm> algorithms = planner.algorithms(with_pairs_);
  NodesPlan tuned = planner.tuned(algorithms);
  std::optional<NodesPlan> summed = planner.in_network(with_pairs_);
  const AlgorithmTime by_network = summed ? summed->chosen : AlgorithmTime{};
  if (summed && by_network.seconds < tuned.chosen.seconds) tuned = std::move(*summed);
  query.algorithm = tuned.chosen.algorithm;
  query.in_network = tuned.in_network;
  choice.chosen = tuned.chosen;
  if (choices_ != nullptr && choices_->size() < kMostChoices && is_new(choice)) {
    for (const Algorithm algorithm : algorithms) choice.candidates.push_back(planner.time_of(algorithm));
    if (by_network.seconds > 0) choice.candidates.push_back(by_network);
  }
  const Accelerator& chip = cluster_.pool_of(sites.members.front().device).accelerator;
  return by_library(query, std::move(tuned.step), cores_of_call(chip, *call), sites.size());
}

// What the wires do not take of the model's time is latency. The native network's messages go as fast as
// their links let them: there it is all latency.
Step TransferPlans::step_of(const LibraryCall& call, const GroupSites& sites) {
  Traffic traffic = call.traffic;
  if (with_pairs_) traffic.most_rate = 0;
  Step step = builder_.build(traffic, sites);
  step.latency = std::max(0.0, call.seconds - step.alone);
  step.alone += step.latency;
  step.own = step.alone - step.latency;
  return step;
}

// Each of its steps starts as a kernel does, and nothing of a library's launch or protocol comes to it.
TransferPlan TransferPlans::without_library(const Op& op, CollectiveQuery& query, const GroupSites& sites,
                                            CollectiveChoice& choice) {
  TransferPlan plan = fastest(query, sites, choice);
  const Accelerator& chip = cluster_.pool_of(sites.members.front().device).accelerator;
  for (Step& step : plan.steps) {
    step.latency += chip.kernel_floor.seconds();
    step.alone += chip.kernel_floor.seconds();
  }
  if (plan.flowing() > 0) plan.memory_bytes = bytes_of_transfer(query.kind, query.bytes, sites.size());
  if (op.units == kPushKernels) plan.cores = static_cast<std::int16_t>(cores_of_push_kernels(chip));
  return plan;
}

// Whether messages between all members would be looked at one by one, and are too many for an algorithm that
// is but one of several.
bool TransferPlans::has_too_many_pairs(const GroupSites& sites) const {
  const bool one_by_one = with_pairs_ || paths_.by_ports() || !sites_.fabric().spec().by_host.empty();
  return one_by_one && sites.nodes.size() > 1 && sites.size() > kMostInPairs;
}

// By modelled time on an idle network; sets the query's algorithm.
TransferPlan TransferPlans::fastest(CollectiveQuery& query, const GroupSites& sites,
                                    CollectiveChoice& choice) {
  const Fabric& fabric = sites_.fabric();
  std::optional<TransferPlan> best;
  Algorithm chosen = Algorithm::kAuto;
  for (const Algorithm algorithm : automatic_choices(query, sites, fabric)) {
    if (with_pairs_ && algorithm == Algorithm::kInSwitch) continue;  // not made of messages
    if (algorithm == Algorithm::kDirect && query.kind != OpKind::kAllToAll && has_too_many_pairs(sites))
      continue;
    query.algorithm = algorithm;
    TransferPlan plan = steps_of(collective_traffic(query, sites, fabric), sites);
    choice.candidates.push_back({algorithm, plan.by_itself()});
    if (best && plan.by_itself() >= best->by_itself()) continue;
    best = std::move(plan);
    chosen = algorithm;
  }
  query.algorithm = chosen;
  return std::move(*best);
}

bool TransferPlans::is_new(const CollectiveChoice& choice) const {
  const auto same = [&](const CollectiveChoice& other) {
    return other.kind == choice.kind && other.group == choice.group && other.ranks == choice.ranks &&
           other.nodes == choice.nodes && other.channels == choice.channels && other.bytes == choice.bytes &&
           other.chosen.algorithm == choice.chosen.algorithm;
  };
  return std::none_of(choices_->begin(), choices_->end(), same);
}

void TransferPlans::note(const CollectiveQuery& query, const GroupSites& sites, CollectiveChoice choice) {
  if (choices_ == nullptr || choices_->size() >= kMostChoices || sites.size() < 2 || !is_new(choice)) return;
  if (sites.size() <= kMostRanksTraced && query.algorithm != Algorithm::kAuto) {
    choice.wires = wire_uses(collective_traffic(query, sites, sites_.fabric()), sites, sites_.fabric());
  }
  choices_->push_back(std::move(choice));
}

}  // namespace moebius
