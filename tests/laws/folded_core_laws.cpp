// Folding where leaves and pods are short of uplinks, so that ranks of a stage share wires with others of
// theirs and of other stages: a folded step takes as long as the unfolded one.
#include <catch2/catch.hpp>

#include "folded_job.h"
#include "small_world.h"
#include "workloads/schedule/recorder.h"
#include "workloads/training/pipeline/columns.h"

using namespace moebius;

namespace {

// Three tiers: nodes to a leaf, leaves to a pod, and how short the uplinks of both are.
struct Tiers {
  int nodes = 0, leaf_nodes = 0, pod_leaves = 0;
  double leaf = 1, core = 4;
};

Cluster cluster_of(const Tiers& tiers) {
  World world{.nodes = tiers.nodes, .per_node = 4, .leaf_ports = tiers.leaf_nodes};
  world.nic = 1e8;  // slow enough that communication decides
  Cluster cluster = make_cluster(world);
  FabricSpec spec = cluster.fabric.spec();
  spec.tiers = 3;
  spec.pod_leaves = tiers.pod_leaves;
  spec.oversubscription = tiers.leaf;
  spec.core_oversubscription = tiers.core;
  const std::vector<FabricPool> parts = {part_of_fabric(cluster.pools.front(), spec)};
  cluster.fabric = Fabric(spec, parts);
  return cluster;
}

TrainingJob job_of(const FoldedPlan& plan, int nodes) {
  TrainingJob job = folded_job(plan, nodes);
  job.plan.overlap_gradients = true;
  return job;
}

double seconds_of(const TrainingJob& job, const Cluster& cluster) {
  const NamedCost cost({{OpKind::kAttention, {1e-4}},
                        {OpKind::kAttentionGrad, {2e-4}},
                        {OpKind::kGroupedGemm, {1e-6, 0, true}},
                        {OpKind::kGroupedGemmDgrad, {1e-6, 0, true}}});
  Training training(job);
  Recorder recorder(training.layout(), {Detail::kNone});
  auto executor = make_sim_executor(cluster, training.layout(), {&cost}, recorder,
                                    {NetworkDetail::kFluid, Driver::kPlain});
  return execute(training, *executor, recorder).seconds();
}

struct Seconds {
  double folded, unfolded;
};

Seconds both(const FoldedPlan& plan, const Tiers& tiers) {
  const Cluster cluster = cluster_of(tiers);
  TrainingJob job = job_of(plan, tiers.nodes);
  job.column_kinds = column_kinds(job.plan, cluster.fabric);
  Seconds seconds{seconds_of(job, cluster), 0};
  job.plan.fold = false;
  job.column_kinds.clear();
  seconds.unfolded = seconds_of(job, cluster);
  return seconds;
}

}  // namespace

TEST_CASE("a folded step over a shared core takes as long as an unfolded one when groups fill pods") {
  for (const FoldedPlan& plan : {FoldedPlan{2, 8}, FoldedPlan{4, 4}, FoldedPlan{2, 8, 2}}) {
    const Seconds seconds = both(plan, {16, 1, 2});
    CHECK(seconds.folded == Approx(seconds.unfolded).epsilon(5e-3));
    CHECK(seconds.folded > 1.01 * both(plan, {16, 1, 2, 1, 1}).folded);  // the core binds
  }
}

// Four devices to a node, one, two or four of which send through a NIC: neighbours in the pipeline, expert
// groups of two nodes, gradients.
TEST_CASE("a folded step takes as long as an unfolded one where devices share NICs") {
  double before = 0;
  for (const int nics : {4, 2, 1}) {
    for (const FoldedPlan& plan : {FoldedPlan{2, 8}, FoldedPlan{4, 4, 2}, FoldedPlan{2, 4}}) {
      World world{.nodes = 16, .per_node = 4, .leaf_ports = 4};
      world.nic = 1e8;
      Cluster cluster = make_cluster(world);
      cluster.pools.front().node.nics = cluster.pools.front().node.rails = nics;
      const FabricSpec spec = cluster.fabric.spec();
      cluster.fabric = Fabric(spec, {part_of_fabric(cluster.pools.front(), spec)});
      TrainingJob job = job_of(plan, world.nodes);
      const double folded = seconds_of(job, cluster);
      job.plan.fold = false;
      INFO(nics << " NICs, pp " << plan.pp << ", ep " << plan.ep << ", tp " << plan.tp);
      CHECK(folded == Approx(seconds_of(job, cluster)).epsilon(5e-3));
      if (plan.tp == 1 && plan.ep == 8) CHECK(folded > 1.2 * before);
      if (plan.tp == 1 && plan.ep == 8) before = folded;
    }
  }
}

// Expert groups of two nodes on pods of three; stages that end inside a pod, so that it carries two of them.
TEST_CASE("a folded step over a shared core takes as long as an unfolded one when groups cross pods") {
  for (const Tiers& tiers : {Tiers{12, 1, 3}, Tiers{12, 3, 1}, Tiers{12, 1, 5}, Tiers{12, 3, 2, 2, 2}}) {
    for (const FoldedPlan& plan :
         {FoldedPlan{1, 8}, FoldedPlan{2, 8}, FoldedPlan{2, 8, 1, 0.8}, FoldedPlan{3, 8, 4}}) {
      const Seconds seconds = both(plan, tiers);
      INFO("pods of " << tiers.leaf_nodes << " x " << tiers.pod_leaves << " nodes, pp " << plan.pp << ", tp "
                      << plan.tp << ", Zipf " << plan.zipf);
      // Gathers of shared experts in a node move exchanges against each other: 0.53% on pods of three nodes.
      CHECK(seconds.folded == Approx(seconds.unfolded).epsilon(plan.tp > 1 ? 6e-3 : 5e-3));
    }
  }
}

// One class for all columns waits as long as the worst placed of them at each exchange, but starts each with
// what it has at hand itself: 0.5% less than the columns one by one here.
TEST_CASE("folding columns that are not alike makes no step shorter by one per cent") {
  const Tiers tiers{12, 1, 3};
  const Cluster cluster = cluster_of(tiers);
  TrainingJob job = job_of({1, 8}, tiers.nodes);
  CHECK(seconds_of(job, cluster) > 0.99 * both({1, 8}, tiers).unfolded);
}
