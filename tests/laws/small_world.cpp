#include "tests/laws/small_world.h"

#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

Cluster make_cluster(const World& world) {
  Pool pool;
  pool.name = "pool";
  pool.nodes = world.nodes;
  pool.accelerator.id = "test-chip";
  pool.accelerator.cores = world.cores;
  pool.accelerator.general_cores = world.general_cores;
  pool.accelerator.independent_engines = world.independent_engines;
  pool.accelerator.memory_rate = {world.memory_rate};
  pool.accelerator.memory_efficiency = 1;
  pool.accelerator.link_rate = pool.accelerator.host_rate = {world.link};
  pool.accelerator.link_efficiency = 1;
  pool.accelerator.link_domain = world.per_node;
  pool.accelerator.nic_rate = {world.nic};
  pool.node.id = "test-node";
  pool.node.accelerators = world.per_node;
  pool.node.nics = pool.node.rails = world.per_node;
  pool.node.scale_up = world.scale_up;
  pool.node.scale_up_latency = world.link_latency;
  FabricSpec spec;
  spec.type = "test";
  spec.nic = {world.nic};
  spec.nic_given = true;
  spec.leaf_ports = world.leaf_ports;
  spec.switch_ports = 1024;
  spec.oversubscription = world.oversubscription;
  spec.transport_efficiency = 1;
  spec.host_latency = world.host_latency;
  spec.hop_latency = world.hop_latency;
  std::vector<FabricPool> parts = {part_of_fabric(pool, spec)};
  return {{pool}, Fabric(spec, parts)};
}

Cost FixedCost::cost(const CostQuery& query) const {
  const KindCost& kind = kinds_.at(query.kind);
  const double rows = kind.per_row ? static_cast<double>(query.shape.m) : 1;
  return {kind.seconds * rows * cores_ / query.cores, Origin::kRoofline, 0, kind.memory_bytes * rows};
}

namespace {

std::vector<std::int32_t> consecutive(int first, int count) {
  std::vector<std::int32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

Group group_of(std::vector<std::int32_t> ranks, std::int32_t me, const Layout& layout) {
  Group group;
  std::vector<bool> seen(layout.classes.size(), false);
  group.num_classes = 0;
  for (const std::int32_t rank : ranks) {
    if (!seen[layout.class_of_rank[rank]]) ++group.num_classes;
    seen[layout.class_of_rank[rank]] = true;
  }
  group.ranks = ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == me) group.my_index = static_cast<std::int32_t>(i);
  }
  return group;
}

}  // namespace

Layout make_layout(const LayoutSpec& spec) {
  Layout layout;
  layout.ranks = spec.ranks;
  layout.device_of_rank = consecutive(0, spec.ranks);
  const int stage = spec.stage > 0 ? spec.stage : spec.ranks;
  layout.classes.resize(spec.fold ? spec.ranks / stage : spec.ranks);
  for (int rank = 0; rank < spec.ranks; ++rank) {
    layout.class_of_rank.push_back(spec.fold ? rank / stage : rank);
    layout.classes[layout.class_of_rank[rank]].ranks.push_back(rank);
  }
  for (RankClass& rank_class : layout.classes) {
    const int me = rank_class.representative();
    const auto set = [&](GroupRole role, std::vector<std::int32_t> ranks) {
      rank_class.groups[static_cast<int>(role)] = group_of(std::move(ranks), me, layout);
    };
    set(GroupRole::kWorld, consecutive(0, spec.ranks));
    if (spec.expert > 0) set(GroupRole::kExpert, consecutive(me / spec.expert * spec.expert, spec.expert));
    if (spec.stage > 0 && me + spec.stage < spec.ranks) set(GroupRole::kNext, {me, me + spec.stage});
    if (spec.stage > 0 && me >= spec.stage) set(GroupRole::kPrevious, {me - spec.stage, me});
  }
  return layout;
}

Op compute_op(OpKind kind, int units) {
  Op op;
  op.kind = kind;
  op.units = static_cast<std::int16_t>(units);
  op.shape = {.m = 1, .n = 1, .k = 1};
  return op;
}

Op communication_op(OpKind kind, double bytes, Algorithm algorithm, GroupRole group) {
  Op op;
  op.kind = kind;
  op.lane = kind == OpKind::kSend   ? Lane::kSendForward
            : kind == OpKind::kRecv ? Lane::kRecvForward
                                    : Lane::kDataComm;
  op.group = group;
  op.algorithm = algorithm;
  op.payload = {bytes};
  op.shape = {.m = 1, .n = 1};
  return op;
}

FragmentPtr make_fragment(std::vector<OpWith> ops, std::vector<RoutePtr> routes) {
  Fragment fragment;
  fragment.name = "test";
  fragment.routes = std::move(routes);
  std::uint32_t match = 0;
  for (OpWith& with : ops) {
    with.op.first_dependency = static_cast<std::int32_t>(fragment.dependencies.size());
    with.op.num_dependencies = static_cast<std::int32_t>(with.after.size());
    fragment.dependencies.insert(fragment.dependencies.end(), with.after.begin(), with.after.end());
    const bool message = with.op.kind == OpKind::kSend || with.op.kind == OpKind::kRecv;
    if (is_communication(with.op.kind) && !message) with.op.match = match++;
    fragment.ops.push_back(with.op);
  }
  return freeze(std::move(fragment));
}

const Span& Outcome::span(int sequence, int op) const {
  const Span* found = nullptr;
  for (const Span& span : spans) {
    if (span.sequence == sequence && span.op == op) found = &span;
  }
  CHECK(found != nullptr, fmt::format("no span of op {} of submission {}", op, sequence));
  return *found;
}

Outcome simulate(const Run& run) {
  const FixedCost cost(run.costs, run.cluster.pools.front().accelerator.cores);
  Recorder recorder(run.layout, {});
  const auto executor = make_sim_executor(run.cluster, run.layout, {&cost}, recorder, run.options);
  std::int32_t sequence = 0;
  for (Submission submission : run.submissions) {
    submission.sequence = sequence++;
    recorder.submitted(submission);
    executor->submit(submission);
  }
  Outcome outcome;
  outcome.end = executor->finish();
  outcome.metrics = recorder.finish(outcome.end);
  outcome.spans = recorder.timeline().spans;
  return outcome;
}

std::vector<Submission> on_all_classes(const Layout& layout, const FragmentPtr& fragment) {
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < layout.classes.size(); ++i) {
    submissions.push_back({.fragment = fragment, .rank_class = static_cast<std::int32_t>(i), .after = {}});
  }
  return submissions;
}

}  // namespace moebius
