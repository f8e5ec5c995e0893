// Parts of the network that fail while messages are under way, against closed forms: nothing is lost, and
// times grow by what the ways that are left can carry.
#include <cmath>

#include <catch2/catch.hpp>

#include "sim/faults/fault_log.h"
#include "sim/network/wire_meter.h"
#include "tests/laws/two_tiers.h"

using namespace moebius;

namespace {

// Its links and switches may fail.
Cluster failing_cluster(TwoTiers net) {
  Cluster cluster = two_tier_cluster(net);
  cluster.ports_may_fail = true;
  return cluster;
}

struct FaultyRun {
  double seconds = 0;
  NetworkUse use;
  std::vector<FaultFacts> faults;
  Timeline timeline;

  double bytes(std::string_view name) const {
    for (const TierUse& tier : use.tiers)
      if (tier.tier == name) return tier.bytes;
    return 0;
  }
};

FaultyRun run(const Cluster& cluster, int ranks, const std::vector<Op>& ops, const FaultPlan& faults,
              std::map<OpKind, KindCost> costs = {}) {
  const Layout layout = make_layout({.ranks = ranks});
  WireMeter meter;
  FaultLog log;
  const FixedCost cost(std::move(costs), cluster.pools.front().accelerator.cores);
  Recorder recorder(layout, {});
  const SimOptions options{.faults = &faults, .fault_log = &log, .meter = &meter};
  const auto executor = make_sim_executor(cluster, layout, {&cost}, recorder, options);
  std::vector<OpWith> chain;
  for (const Op& op : ops) chain.push_back({op, {}});
  std::int32_t sequence = 0;
  for (Submission submission : on_all_classes(layout, make_fragment(chain))) {
    submission.sequence = sequence++;
    recorder.submitted(submission);
    executor->submit(submission);
  }
  const Time end = executor->finish();
  recorder.finish(end);
  return {end.seconds(), meter.use(), log.facts(), recorder.timeline()};
}

Fault link_down(int leaf, int uplink, Time at, Time lasts = kForever) {
  return {.kind = FaultKind::kLinkDown,
          .at = at,
          .part = {FabricPart::kLeafUplink, leaf, uplink, 0},
          .lasts = lasts};
}

constexpr Time us(std::int64_t count) {
  return {count * 1000};
}

double last_value(const Timeline& timeline, std::string_view name) {
  double value = -1;
  for (const CounterSample& sample : timeline.samples)
    if (timeline.counters[sample.counter] == name) value = sample.value;
  return value;
}

}  // namespace

// 8 ranks a leaf, 4 uplinks of 50 GB/s. Each rank sends 8 MB to each other one: 64 x 8 MB = 512 MB climb from
// each leaf, 128 MB a port, T = 2.56 ms. At 1 ms a link breaks; of its 128 MB the share r = 1 - (1 ms -
// latency) / T is left, both ways. 0.5 ms later the three other ports take it, a third each, on top of what
// they have: all are busy without a pause from the start, and end after T + r T / 3. The NICs carry 15 x 8 MB
// = 2.4 ms and a third of what was held back for them at most: they are not in the way.
TEST_CASE("a link that breaks in the middle of an all-to-all moves its bytes to the other links") {
  const Cluster cluster = failing_cluster({.routing = Routing::kSpray, .oversubscription = 2});
  const Op op = all_to_all(16 * 8e6);
  const FaultyRun whole = run(cluster, 16, {op}, {});
  const double busy = 64 * 8e6 / 4 / kNicRate;
  REQUIRE(whole.seconds == Approx(kBetweenLeaves + busy).epsilon(1e-6));

  const FaultPlan plan{{link_down(0, 1, us(1000))}, {.in_collective = us(500)}};
  const FaultyRun broken = run(cluster, 16, {op}, plan);
  const double left = 1 - (1e-3 - kBetweenLeaves) / busy;
  REQUIRE(broken.seconds == Approx(kBetweenLeaves + busy + left * busy / 3).epsilon(1e-5));

  SECTION("nothing is lost, and nothing is carried twice") {
    for (const char* tier : {"NIC out", "NIC in", "leaf up", "leaf down"})
      REQUIRE(broken.bytes(tier) == Approx(whole.bytes(tier)).epsilon(1e-9));
    REQUIRE(broken.bytes("leaf up") == Approx(2 * 64 * 8e6).epsilon(1e-9));
  }
  SECTION("the log says what stood still and what moved") {
    REQUIRE(broken.faults.size() == 1);
    const FaultFacts& fault = broken.faults.front();
    REQUIRE(fault.down == us(1000));
    REQUIRE(fault.failover == us(1500));
    REQUIRE(fault.detected == kForever);
    // A quarter of what climbs from leaf 0 and of what comes down to it.
    REQUIRE(fault.stalled_bytes >= Approx(2 * left * 64 * 8e6 / 4).epsilon(1e-5));
    REQUIRE(fault.moved_bytes == Approx(fault.stalled_bytes).epsilon(1e-9));
    REQUIRE(fault.detour_bytes == 0);
    REQUIRE(last_value(broken.timeline, "fault leaf 0 uplink 1") == 0);
    REQUIRE(last_value(broken.timeline, "failover moved bytes") == Approx(fault.moved_bytes));
  }
}

// As above, but at 1 ms the link keeps half: adaptive switches put a seventh of what leaf 0 has left there,
// and two on each of the others. From 2 ms on it is whole again.
TEST_CASE("adaptive switches level what is under way around a link that slows down") {
  const Cluster cluster = failing_cluster({.routing = Routing::kAdaptive, .oversubscription = 2});
  const Op op = all_to_all(16 * 8e6);
  const double busy = 64 * 8e6 / 4 / kNicRate, left = busy - (1e-3 - kBetweenLeaves);
  FaultPlan plan{{link_down(0, 1, us(1000))}, {.in_collective = us(500)}};
  plan.faults[0].kind = FaultKind::kLinkDegraded;
  plan.faults[0].part.capacity = 0.5;
  const FaultyRun slowed = run(cluster, 16, {op}, plan);
  REQUIRE(slowed.seconds == Approx(1e-3 + left * 4 / 3.5).epsilon(1e-3));
  REQUIRE(slowed.bytes("leaf up") == Approx(2 * 64 * 8e6).epsilon(1e-9));
  plan.faults[0].lasts = us(1000);
  REQUIRE(run(cluster, 16, {op}, plan).seconds == Approx(2e-3 + left - 1e-3 * 3.5 / 4).epsilon(1e-3));

  SECTION("and what begins later too") {
    plan.faults[0].at = {};
    plan.faults[0].lasts = kForever;
    REQUIRE(run(cluster, 16, {op}, plan).seconds == Approx(kBetweenLeaves + busy * 4 / 3.5).epsilon(1e-3));
  }
}

// As the first, but the failover comes 10 ms after the break, when all other ports have long been idle: a
// third of what was left on the broken one goes over each of them then.
TEST_CASE("until the failover what was on a broken link stands still") {
  const Cluster cluster = failing_cluster({.routing = Routing::kSpray, .oversubscription = 2});
  const double busy = 64 * 8e6 / 4 / kNicRate, left = 1 - (1e-3 - kBetweenLeaves) / busy;
  const FaultPlan late{{link_down(0, 1, us(1000))}, {.in_collective = us(10000)}};
  REQUIRE(run(cluster, 16, {all_to_all(16 * 8e6)}, late).seconds ==
          Approx(11e-3 + left * busy / 3).epsilon(1e-5));

  SECTION("or until the control plane has taken it out") {
    FaultPlan mitigated = late;
    mitigated.failover.mitigate = us(5000);
    mitigated.failover.detect = us(4000);
    const FaultyRun result = run(cluster, 16, {all_to_all(16 * 8e6)}, mitigated);
    REQUIRE(result.seconds == Approx(6e-3 + left * busy / 3).epsilon(1e-5));
    REQUIRE(result.faults.front().detected == us(5000));
    REQUIRE(result.faults.front().mitigated == us(6000));
  }
  SECTION("or until it is whole again") {
    const FaultPlan flap{{link_down(0, 1, us(1000), us(3000))}, {.in_collective = us(10000)}};
    const FaultyRun result = run(cluster, 16, {all_to_all(16 * 8e6)}, flap);
    REQUIRE(result.seconds == Approx(4e-3 + left * busy).epsilon(1e-5));
    REQUIRE(result.faults.front().moved_bytes == 0);
    REQUIRE(result.faults.front().up == us(4000));
  }
}

// One hashed flow of 50 MB, 1 ms. At 0.4 ms its uplink breaks, at 0.6 ms it goes on over another.
TEST_CASE("a hashed flow on a broken port waits for the failover and takes another port") {
  const Cluster cluster = failing_cluster({.routing = Routing::kEcmp});
  const std::vector<Op> op{all_to_all(16 * 50e6 / 16)};
  FaultPlan plan;
  plan.failover.in_collective = us(200);
  const double alone = run(cluster, 16, op, plan).seconds;
  // Every uplink of leaf 0 but one breaks: all its flows share that one in the end.
  for (int uplink = 0; uplink < 7; ++uplink) plan.faults.push_back(link_down(0, uplink, us(10)));
  const FaultyRun result = run(cluster, 16, op, plan);
  REQUIRE(result.seconds > alone);
  const double climbing = 64 * 50e6 / 16;
  REQUIRE(result.seconds > climbing / kNicRate * 0.9);
  REQUIRE(result.bytes("leaf up") == Approx(2 * climbing).epsilon(1e-9));
  REQUIRE(result.bytes("leaf down") == Approx(2 * climbing).epsilon(1e-9));
}

// Two nodes of two devices on one leaf, all ranks send to all: 10 MB between any two. Each NIC sends 20 MB =
// 0.4 ms. At 0.1 ms (latency 2.5 us) the NIC of device 0 breaks; at 0.2 ms what it had left goes over the NIC
// of device 1, after the 20 MB of that: T + r T.
TEST_CASE("a broken NIC's messages take a detour over the neighbour's") {
  const Cluster cluster =
      failing_cluster({.leaves = 2, .ports = 1, .per_node = 2, .routing = Routing::kSpray});
  const Op op = all_to_all(4 * 10e6);
  const FaultyRun whole = run(cluster, 4, {op}, {});
  const FaultPlan plan{{{.kind = FaultKind::kNicDown, .at = us(100), .part = {FabricPart::kNic, 0, 0, 0}}},
                       {.in_collective = us(100)}};
  const FaultyRun broken = run(cluster, 4, {op}, plan);
  const double busy = 2 * 10e6 / kNicRate, latency = whole.seconds - busy;
  const double left = 1 - (100e-6 - latency) / busy;
  REQUIRE(broken.seconds == Approx(latency + busy + left * busy).epsilon(0.01));
  REQUIRE(broken.bytes("NIC out") == Approx(whole.bytes("NIC out")).epsilon(1e-9));
  REQUIRE(broken.bytes("NIC in") == Approx(whole.bytes("NIC in")).epsilon(1e-9));
  REQUIRE(broken.bytes("scale-up out") > whole.bytes("scale-up out") * 1.01);
  REQUIRE(broken.faults.front().detour_bytes > 0);
  REQUIRE(broken.faults.front().detour_bytes == Approx(broken.faults.front().moved_bytes));
}

// A ring over two leaves with as many uplinks as ranks: the pipeline stands still with its slowest message,
// from the break to the failover; afterwards no port is full. So the time grows by the failover alone.
TEST_CASE("a ring stands still until the failover and then goes on") {
  const Cluster cluster = failing_cluster({.routing = Routing::kSpray});
  const Op op = communication_op(OpKind::kAllReduce, 160e6, Algorithm::kRing);
  const double whole = run(cluster, 16, {op}, {}).seconds;
  const FaultPlan plan{{link_down(1, 2, us(500))}, {.in_collective = us(700)}};
  const FaultyRun broken = run(cluster, 16, {op}, plan);
  REQUIRE(broken.seconds == Approx(whole + 700e-6).epsilon(1e-4));
  REQUIRE(broken.faults.front().failover == us(1200));
}

// The second all-to-all of the same ranks knows of the break: it does not wait again.
TEST_CASE("who has once moved does not wait again") {
  const Cluster cluster = failing_cluster({.routing = Routing::kSpray});
  const std::vector<Op> twice{all_to_all(16 * 1e6), all_to_all(16 * 1e6)};
  const double whole = run(cluster, 16, twice, {}).seconds;
  const FaultPlan plan{{link_down(0, 0, us(0))}, {.in_collective = us(5000)}};
  const double broken = run(cluster, 16, twice, plan).seconds;
  REQUIRE(broken > whole / 2 + 5e-3);
  REQUIRE(broken < whole + 5.2e-3);
}

// Half the capacity of one of 4 full ports: its bytes left take twice as long, r T more.
TEST_CASE("a degraded link carries its bytes more slowly") {
  const Cluster cluster = failing_cluster({.routing = Routing::kSpray, .oversubscription = 2});
  const double busy = 64 * 8e6 / 4 / kNicRate, left = 1 - (1e-3 - kBetweenLeaves) / busy;
  Fault fault = link_down(0, 1, us(1000));
  fault.kind = FaultKind::kLinkDegraded;
  fault.part.capacity = 0.5;
  const FaultyRun result = run(cluster, 16, {all_to_all(16 * 8e6)}, {{fault}, {}});
  REQUIRE(result.seconds == Approx(kBetweenLeaves + busy + left * busy).epsilon(1e-5));
  REQUIRE(result.faults.front().moved_bytes == 0);
}

TEST_CASE("a fault after the end of a run changes nothing") {
  const Cluster cluster = failing_cluster({.routing = Routing::kSpray});
  const Op op = all_to_all(16 * 1e6);
  const FaultyRun late = run(cluster, 16, {op}, {{link_down(0, 0, us(1'000'000))}, {}});
  REQUIRE(late.seconds == run(cluster, 16, {op}, {}).seconds);
  REQUIRE(late.faults.empty());
}

// 1 ms of work at full speed. From 0.2 ms to 1.0 ms the node works at a quarter: 0.2 ms done, then 0.2 ms,
// then the other 0.6 ms at full speed.
TEST_CASE("the chips of a slow node do their work more slowly") {
  const Cluster cluster = make_cluster({.nodes = 2, .per_node = 1});
  Fault fault;
  fault.kind = FaultKind::kSlowNode;
  fault.at = us(200);
  fault.node = 1;
  fault.speed = 0.25;
  fault.lasts = us(800);
  const FaultyRun result =
      run(cluster, 2, {compute_op(OpKind::kGemm)}, {{fault}, {}}, {{OpKind::kGemm, {.seconds = 1e-3}}});
  REQUIRE(result.seconds == Approx(1.6e-3).epsilon(1e-6));
  REQUIRE(result.faults.front().up == us(1000));
}

// 16 uplinks a leaf: what climbs is over the leaves' ports after 0.64 ms, the NICs send for 2.4 ms. What they
// have left at 1 ms for broken links waits until these are whole again at 4 ms.
TEST_CASE("what a NIC has left for a broken link waits, also where the link had passed its bytes") {
  const Cluster cluster = failing_cluster({.routing = Routing::kSpray, .oversubscription = 0.5});
  const Op op = all_to_all(16 * 8e6);
  const double left = 1 - (1e-3 - kBetweenLeaves) / (15 * 8e6 / kNicRate);
  const FaultyRun whole = run(cluster, 16, {op}, {});
  for (const int links : {1, 16}) {
    FaultPlan plan;
    plan.failover.in_collective = us(10000);
    for (int uplink = 0; uplink < links; ++uplink)
      plan.faults.push_back(link_down(0, uplink, us(1000), us(3000)));
    const FaultyRun broken = run(cluster, 16, {op}, plan);
    CHECK(broken.seconds == Approx(4e-3 + left * links * 4e6 / kNicRate).epsilon(1e-4));
    for (const char* tier : {"NIC out", "NIC in", "leaf up", "leaf down"})
      CHECK(broken.bytes(tier) == Approx(whole.bytes(tier)).epsilon(1e-9));
  }
}
