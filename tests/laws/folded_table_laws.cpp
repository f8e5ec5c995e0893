// What a folded run says that the network carried is what an unfolded one says, also where the members of a
// class send unlike amounts.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>

#include "folded_job.h"
#include "sim/network/wire_meter.h"
#include "small_world.h"
#include "workloads/schedule/recorder.h"

using namespace moebius;

namespace {

struct UnevenRun {
  double seconds = 0;
  NetworkUse use;
};

UnevenRun run_uneven(const FoldedPlan& plan, int devices_per_nic, std::uint64_t seed, bool fold,
                     ScaleUp scale_up = ScaleUp::kSwitch) {
  constexpr int kNodes = 8;
  Cluster cluster = make_cluster({.nodes = kNodes, .per_node = 4, .nic = 1e9, .scale_up = scale_up});
  if (devices_per_nic > 1) {
    FabricSpec spec = cluster.fabric.spec();
    spec.rails = 4 / devices_per_nic;
    std::vector<FabricPool> parts = {part_of_fabric(cluster.pools.front(), spec)};
    parts.front().devices_per_nic = devices_per_nic;
    parts.front().rails = spec.rails;
    cluster.fabric = Fabric(spec, parts);
  }
  TrainingJob job = folded_job(plan, kNodes);
  job.plan.fold = fold;
  job.workload.seed = seed;
  const NamedCost cost({{OpKind::kAttention, {1e-4}}, {OpKind::kGroupedGemm, {1e-6, 0, true}}});
  WireMeter meter;
  Training training(job);
  Recorder recorder(training.layout(), {Detail::kNone});
  auto executor = make_sim_executor(cluster, training.layout(), {&cost}, recorder, {.meter = &meter});
  const Time end = execute(training, *executor, recorder);
  return {end.seconds(), meter.use()};
}

const TierUse& tier_named(const NetworkUse& use, const std::string& name) {
  const auto at =
      std::find_if(use.tiers.begin(), use.tiers.end(), [&](const TierUse& of) { return of.tier == name; });
  REQUIRE(at != use.tiers.end());
  return *at;
}

}  // namespace

// Groups of neighbours meet on a NIC that these share, of which folding sees one: bytes agree, times roughly.
TEST_CASE("a folded run with uneven experts carries on each tier what an unfolded one does") {
  const std::uint64_t seeds =
      4;  // which NIC is busiest is luck where folding sees one: times agree on average
  for (const int devices_per_nic : {1, 2}) {
    const bool own_nic = devices_per_nic == 1;
    for (const FoldedPlan& plan : {FoldedPlan{1, 8, 1, 1}, FoldedPlan{2, 8, 1, 1}, FoldedPlan{2, 8, 2, 1}}) {
      std::map<std::string, double> busiest, busiest_unfolded, imbalance;  // by tier
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const UnevenRun folded = run_uneven(plan, devices_per_nic, seed, true),
                        unfolded = run_uneven(plan, devices_per_nic, seed, false);
        CHECK(folded.use.folded);
        CHECK(folded.seconds == Approx(unfolded.seconds).epsilon(own_nic ? 5e-3 : 0.05));
        for (const char* way : {"scale-up", "NIC"}) {
          INFO(way << ", pp " << plan.pp << ", tp " << plan.tp << ", devices a NIC " << devices_per_nic);
          const TierUse &out = tier_named(folded.use, std::string(way) + " out"),
                        &in = tier_named(folded.use, std::string(way) + " in");
          CHECK(out.bytes == Approx(in.bytes).epsilon(1e-6));
          for (const TierUse* of : {&out, &in}) {
            const TierUse& other = tier_named(unfolded.use, of->tier);
            CHECK(of->bytes == Approx(other.bytes).epsilon(0.01));
            if (own_nic) CHECK(of->longest == Approx(other.longest).epsilon(0.01));
            busiest[of->tier] += of->longest / seeds;
            imbalance[of->tier] += of->imbalance() / seeds;
            busiest_unfolded[of->tier] += other.longest / seeds;
          }
        }
      }
      for (const auto& [tier, seconds] : busiest) {
        INFO(tier << ", pp " << plan.pp << ", tp " << plan.tp << ", devices a NIC " << devices_per_nic);
        CHECK(seconds == Approx(busiest_unfolded.at(tier)).epsilon(own_nic ? 0.01 : 0.05));
        CHECK(imbalance.at(tier) > 1.02);
      }
    }
  }
}

// Links of a mesh are those of two devices: one stands for all between ranks of the same two classes that
// meet in the same groups.
TEST_CASE("a folded run counts the links of a full mesh for all groups that one stands for") {
  for (const FoldedPlan& plan : {FoldedPlan{1, 4, 1}, FoldedPlan{2, 4, 1}, FoldedPlan{1, 8, 1}}) {
    INFO("pp " << plan.pp << ", ep " << plan.ep);
    const UnevenRun folded = run_uneven(plan, 1, 1, true, ScaleUp::kFullMesh),
                    unfolded = run_uneven(plan, 1, 1, false, ScaleUp::kFullMesh);
    CHECK(folded.use.folded);
    const TierUse &pairs = tier_named(folded.use, "scale-up pair"),
                  &all = tier_named(unfolded.use, "scale-up pair");
    CHECK(pairs.ports == all.ports);
    CHECK(pairs.bytes == Approx(all.bytes).epsilon(0.01));
    CHECK(pairs.capacity == Approx(all.capacity));
    CHECK(pairs.longest == Approx(all.longest).epsilon(0.01));
  }
}
