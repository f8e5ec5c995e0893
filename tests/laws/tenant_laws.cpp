// Two tenants that share an uplink, with and without a priority queue. Leaves of four hosts of 50 GB/s with
// an uplink of 50 GB/s each; tenant "small" has one host under either leaf, "large" three.
#include <catch2/catch.hpp>

#include "tests/laws/small_world.h"
#include "workloads/tenants.h"

using namespace moebius;

namespace {

// `small` exchanges 100 MB: 50 MB each way, 1 ms on an idle uplink. `large` exchanges 600 MB a host, 9 of its
// messages on each uplink at a time.
std::vector<TenantFigures> share_an_uplink(int queue_of_small, bool fold) {
  const Cluster cluster = make_cluster({.nodes = 8, .per_node = 1, .leaf_ports = 4, .oversubscription = 4});
  CollectiveWorkload work;
  work.fold = fold;
  Tenant small{.name = "small", .operation = OpKind::kAllToAll, .algorithm = Algorithm::kDirect};
  small.bytes = {100e6};
  small.ranks = 2;
  small.stride = 4;
  small.queue = queue_of_small;
  Tenant large = small;
  large.name = "large";
  large.bytes = {600e6};
  large.ranks = 6;
  large.first = 1;
  large.block = 3;
  large.queue = 0;
  work.tenants = {small, large};
  work.ranks = 8;
  TenantsRun run(work);
  Recorder recorder(run.layout(), {});
  const FixedCost cost({}, 100);
  const auto executor =
      make_sim_executor(cluster, run.layout(), {&cost}, recorder, {NetworkDetail::kFluid, Driver::kPlain});
  execute(run, *executor, recorder);
  return run.figures();
}

}  // namespace

// One queue: small's one message has a tenth of the uplink beside large's nine, all the time: 50 MB at 5
// GB/s. Large loses 50 MB of the uplink to it: 9 * 100 MB and 50 MB at 50 GB/s.
TEST_CASE("tenants in one queue share an uplink by the number of their messages") {
  for (const bool fold : {true, false}) {
    const std::vector<TenantFigures> figures = share_an_uplink(0, fold);
    REQUIRE(figures[0].alone_s == Approx(1e-3 + kBetweenLeaves).epsilon(1e-6));
    REQUIRE(figures[0].together_s == Approx(10e-3 + kBetweenLeaves).epsilon(1e-6));
    REQUIRE(figures[1].alone_s == Approx(18e-3 + kBetweenLeaves).epsilon(1e-6));
    REQUIRE(figures[1].together_s == Approx(19e-3 + kBetweenLeaves).epsilon(1e-6));
  }
}

// A higher queue for small: it has the uplink as if it were alone; what large loses is the same.
TEST_CASE("a tenant in a higher queue is not slowed by one that fills the core") {
  for (const bool fold : {true, false}) {
    const std::vector<TenantFigures> figures = share_an_uplink(1, fold);
    REQUIRE(figures[0].slowdown() == Approx(1).epsilon(1e-6));
    REQUIRE(figures[1].together_s == Approx(19e-3 + kBetweenLeaves).epsilon(1e-6));
  }
}

namespace {

// Eight hosts exchange 80 MB each on the expert lane and 800 MB each on the data lane, begun together;
// returns when the expert lane's exchange has ended.
double expert_exchange(int expert_queue) {
  const Cluster cluster = make_cluster({.nodes = 8, .per_node = 1, .expert_queue = expert_queue});
  const Layout layout = make_layout({.ranks = 8, .fold = true});
  Op expert = communication_op(OpKind::kAllToAll, 80e6, Algorithm::kDirect);
  expert.lane = Lane::kExpertComm;
  const Op data = communication_op(OpKind::kAllToAll, 800e6, Algorithm::kDirect);
  const WorldRun outcome =
      simulate({cluster, layout, on_all_classes(layout, make_fragment({{expert}, {data}})), {}, {}});
  return outcome.span(0, 0).end.seconds();
}

}  // namespace

// Under one leaf (2 us + one switch) 70 MB leave each NIC at 50 GB/s, or at half of it beside the other lane.
TEST_CASE("the fabric's queue for experts keeps their exchanges from waiting for gradients") {
  REQUIRE(expert_exchange(0) == Approx(2.8e-3 + 2.5e-6).epsilon(1e-6));
  REQUIRE(expert_exchange(1) == Approx(1.4e-3 + 2.5e-6).epsilon(1e-6));
}
