// Small clusters with round numbers, layouts and fragments of a few ops, and a run of them: what the laws are
// tested on.
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/sim_executor.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// Rates are achieved ones: every efficiency is 1.
struct World {
  int nodes = 1;
  int per_node = 8;
  double link = 100e9;  // scale-up, bytes per second, device and direction
  double nic = 50e9;    // bytes per second, device and direction
  Time link_latency{1'000};
  Time host_latency{2'000};
  Time hop_latency{500};  // each switch
  ScaleUp scale_up = ScaleUp::kSwitch;
  int leaf_ports = 1024;  // one leaf for each rail, unless smaller
  double oversubscription = 1;
  int cores = 100;
  int general_cores = 0;
  bool independent_engines = false;
  double memory_rate = 1e12;
  int tiers = kAutomaticTiers;
  Time message_time{0};  // each message between nodes
  double channel_rate = 0;
  bool reduces = false, network_reduces = false;  // switches of nodes, of the network
  int expert_queue = 0;                           // the priority queue of dispatch and combine
};
// Of a World as it is by default: the host's latency and one switch, or three; the rate of a NIC.
inline constexpr double kWithinLeaf = 2.5e-6, kBetweenLeaves = 3.5e-6, kNicRate = 50e9;
inline constexpr double kMB = 1e6;

Cluster make_cluster(const World& world);
// A node whose links are so fast that a message takes a nanosecond or two.
inline World instant_network(int devices) {
  World world{.nodes = 1, .per_node = devices};
  world.link = 1e15;
  world.link_latency = {0};
  return world;
}

// Cost of a kind: seconds at all cores of the chip, inversely proportional to the cores held; bytes of memory
// traffic. Kinds with a row count cost `seconds` for each row of the shape when `per_row` is set.
struct KindCost {
  double seconds = 0;
  double memory_bytes = 0;
  bool per_row = false;
};

// Kinds that are named cost what is said, for each row where `per_row` is set; all others nothing.
class NamedCost : public CostSource {
 public:
  explicit NamedCost(std::map<OpKind, KindCost> kinds) : kinds_(std::move(kinds)) {}
  Cost cost(const CostQuery& query) const override {
    const auto found = kinds_.find(query.kind);
    if (found == kinds_.end()) return {};
    std::int64_t rows = query.shape.m;
    if (!query.rows.empty()) rows = std::accumulate(query.rows.begin(), query.rows.end(), std::int64_t{0});
    return {.seconds = found->second.seconds * static_cast<double>(found->second.per_row ? rows : 1)};
  }
  std::string description() const override { return "named kinds only"; }

 private:
  std::map<OpKind, KindCost> kinds_;
};

class FixedCost : public CostSource {
 public:
  FixedCost(std::map<OpKind, KindCost> kinds, int cores) : kinds_(std::move(kinds)), cores_(cores) {}
  Cost cost(const CostQuery& query) const override;
  std::string description() const override { return "fixed"; }

 private:
  std::map<OpKind, KindCost> kinds_;
  int cores_;
};

// `ranks` ranks on the first devices. All are the world group; expert groups are `expert` consecutive ranks.
// Rank r has the next group {r, r + stage} and the previous group {r - stage, r} where `stage` is not zero
// and the ranks exist.
struct LayoutSpec {
  int ranks = 1;
  int expert = 0;
  int stage = 0;
  bool fold = false;  // one class; with stages, one for each
};
Layout make_layout(const LayoutSpec& spec);

Op compute_op(OpKind kind, int units = 0);
Op communication_op(OpKind kind, double bytes, Algorithm algorithm = Algorithm::kRing,
                    GroupRole group = GroupRole::kWorld);

// Fragments with dependencies by op index.
struct OpWith {
  Op op;
  std::vector<std::int32_t> after = {};
};
FragmentPtr make_fragment(std::vector<OpWith> ops, std::vector<RoutePtr> routes = {});

struct WorldRun {
  Time end;
  std::vector<Span> spans;  // as they ended
  Metrics metrics;
  double seconds() const { return end.seconds(); }
  // The one span of an op; throws where there is none.
  const Span& span(int sequence, int op = 0) const;
};

struct Run {
  const Cluster& cluster;
  const Layout& layout;
  std::vector<Submission> submissions;  // sequences are set by simulate()
  std::map<OpKind, KindCost> costs = {};
  SimOptions options = {};
};
WorldRun simulate(const Run& run);

// An op on all ranks.
double seconds_of(const World& world, const LayoutSpec& ranks, const Op& op, const SimOptions& options = {});

// The fragment once for each class.
std::vector<Submission> on_all_classes(const Layout& layout, const FragmentPtr& fragment);

// ---- how

inline Cluster make_cluster(const World& world) {
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
  pool.accelerator.channel_rate = {world.channel_rate};
  pool.accelerator.link_reduces = world.reduces;
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
  spec.message_time = world.message_time;
  spec.reduces = world.network_reduces;
  spec.tiers = world.tiers;
  spec.expert_queue = world.expert_queue;
  std::vector<FabricPool> parts = {part_of_fabric(pool, spec)};
  return {{pool}, Fabric(spec, parts)};
}

inline Cost FixedCost::cost(const CostQuery& query) const {
  const KindCost& kind = kinds_.at(query.kind);
  const double rows = kind.per_row ? static_cast<double>(query.shape.m) : 1;
  return {kind.seconds * rows * cores_ / query.cores, Origin::kRoofline, 0, kind.memory_bytes * rows};
}

inline std::vector<std::int32_t> consecutive(int first, int count) {
  std::vector<std::int32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

inline Group group_of(std::vector<std::int32_t> ranks, std::int32_t me, const Layout& layout) {
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

inline Layout make_layout(const LayoutSpec& spec) {
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

inline Op compute_op(OpKind kind, int units) {
  Op op;
  op.kind = kind;
  op.units = static_cast<std::int16_t>(units);
  const bool attention = kind == OpKind::kAttention || kind == OpKind::kAttentionGrad;
  op.shape = {.m = 1, .n = 1, .k = attention ? 0 : 1};  // k of attention: kernels of its own
  return op;
}

inline Op communication_op(OpKind kind, double bytes, Algorithm algorithm, GroupRole group) {
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

inline FragmentPtr make_fragment(std::vector<OpWith> ops, std::vector<RoutePtr> routes) {
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

inline const Span& WorldRun::span(int sequence, int op) const {
  const Span* found = nullptr;
  for (const Span& span : spans) {
    if (span.sequence == sequence && span.op == op) found = &span;
  }
  if (found == nullptr)
    throw std::logic_error(fmt::format("no span of op {} of submission {}", op, sequence));
  return *found;
}

inline WorldRun simulate(const Run& run) {
  const FixedCost cost(run.costs, run.cluster.pools.front().accelerator.cores);
  const std::vector<const CostSource*> costs(run.cluster.pools.size(), &cost);  // the same for all
  Recorder recorder(run.layout, {});
  const auto executor = make_sim_executor(run.cluster, run.layout, costs, recorder, run.options);
  std::int32_t sequence = 0;
  for (Submission submission : run.submissions) {
    submission.sequence = sequence++;
    recorder.submitted(submission);
    executor->submit(submission);
  }
  WorldRun outcome;
  outcome.end = executor->finish();
  outcome.metrics = recorder.finish(outcome.end);
  outcome.spans = recorder.timeline().spans;
  return outcome;
}

inline std::vector<Submission> on_all_classes(const Layout& layout, const FragmentPtr& fragment) {
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < layout.classes.size(); ++i) {
    submissions.push_back({.fragment = fragment, .rank_class = static_cast<std::int32_t>(i), .after = {}});
  }
  return submissions;
}

inline double seconds_of(const World& world, const LayoutSpec& ranks, const Op& op,
                         const SimOptions& options) {
  const Cluster cluster = make_cluster(world);
  const Layout layout = make_layout(ranks);
  return simulate({cluster, layout, on_all_classes(layout, make_fragment({{op}})), {}, options}).seconds();
}

}  // namespace moebius
