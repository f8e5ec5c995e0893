// What a folded run says that the network carried is what an unfolded one says, also where the members of a
// class send unlike amounts.
#include <catch2/catch.hpp>

#include <algorithm>
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

UnevenRun run_uneven(const FoldedPlan& plan, int devices_per_nic, bool fold) {
  constexpr int kNodes = 8;
  Cluster cluster = make_cluster({.nodes = kNodes, .per_node = 4, .nic = 1e9});
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
  for (const int devices_per_nic : {1, 2}) {
    const bool own_nic = devices_per_nic == 1;
    for (const FoldedPlan& plan : {FoldedPlan{1, 8, 1, 1}, FoldedPlan{2, 8, 1, 1}, FoldedPlan{2, 8, 2, 1}}) {
      const UnevenRun folded = run_uneven(plan, devices_per_nic, true),
                      unfolded = run_uneven(plan, devices_per_nic, false);
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
          CHECK(of->longest == Approx(other.longest).epsilon(own_nic ? 0.01 : 0.05));
          CHECK(of->imbalance() > 1.02);
        }
      }
    }
  }
}
