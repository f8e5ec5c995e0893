// Flows begun together, by sharing and packet by packet.
#include <set>

#include <catch2/catch.hpp>

#include "sim/network/packet_flows.h"
#include "tests/laws/small_world.h"
#include "workloads/flows.h"

using namespace moebius;

namespace {

constexpr World kHosts{.nodes = 8, .per_node = 1};

Cluster with_transport(const World& world, PacketTransport transport) {
  Cluster cluster = make_cluster(world);
  FabricSpec spec = cluster.fabric.spec();
  std::vector<FabricPool> pools = cluster.fabric.pools();
  spec.transport = transport;
  spec.transport_efficiency = transport.efficiency();
  pools[0].nic_rate = pools[0].nic_rate * transport.efficiency();
  cluster.fabric = Fabric(spec, pools);
  return cluster;
}

PacketTransport eqds() {
  PacketTransport transport;
  transport.ideal = false;
  return transport;
}

CollectiveWorkload work_of(FlowPattern pattern, double bytes = 1e6) {
  CollectiveWorkload work;
  work.flows = FlowsWorkload{.pattern = pattern};
  work.bytes = {bytes};
  work.ranks = 8;
  return work;
}

FlowTimes run(const CollectiveWorkload& work, const Cluster& cluster,
              NetworkDetail detail = NetworkDetail::kFluid) {
  FlowsRun flows(work, cluster.fabric, 1);
  Recorder recorder(flows.layout(), {});
  const FixedCost cost({}, 100);
  const auto executor =
      make_sim_executor(cluster, flows.layout(), {&cost}, recorder, {detail, Driver::kPlain});
  execute(flows, *executor, recorder);
  return flows.times();
}

}  // namespace

// 1 MB and 4 MB into one NIC of 50 GB/s: 25 GB/s each until 1 MB is there, 40 us; the other 3 MB in 60 us.
TEST_CASE("flows into one NIC share it by max-min and each ends at a time of its own") {
  CollectiveWorkload work = work_of(FlowPattern::kList);
  work.flows->list = {{1, 0, {1e6}}, {2, 0, {4e6}}};
  const FlowTimes times = run(work, make_cluster(kHosts));
  CHECK(times.count == 2);
  CHECK(times.min_s == Approx(40e-6 + kWithinLeaf).epsilon(1e-6));
  CHECK(times.max_s == Approx(100e-6 + kWithinLeaf).epsilon(1e-6));
  CHECK(times.mean_s == Approx(70e-6 + kWithinLeaf).epsilon(1e-6));
}

// Each host sends 7 MB at 50 GB/s; a list of two flows between the same hosts is two flows.
TEST_CASE("all-to-all flows end together, when every NIC is done") {
  const FlowTimes times = run(work_of(FlowPattern::kAllToAll), make_cluster(kHosts));
  CHECK(times.count == 56);
  CHECK(times.min_s == Approx(140e-6 + kWithinLeaf).epsilon(1e-6));
  CHECK(times.max_s == Approx(140e-6 + kWithinLeaf).epsilon(1e-6));
  CollectiveWorkload twice = work_of(FlowPattern::kList);
  twice.flows->list = {{1, 0, {1e6}}, {1, 0, {1e6}}};
  CHECK(run(twice, make_cluster(kHosts)).min_s == Approx(40e-6 + kWithinLeaf).epsilon(1e-6));
}

TEST_CASE("in a permutation every device sends once and receives once and none to itself") {
  std::set<std::vector<std::int32_t>> drawn;
  for (const std::uint64_t seed : {1, 2, 3}) {
    std::vector<std::int32_t> to;
    std::set<std::int32_t> senders, receivers;
    for (const DeviceFlow& flow : flows_of({.pattern = FlowPattern::kPermutation}, 50, {1.0}, seed)) {
      CHECK(flow.from != flow.to);
      senders.insert(flow.from);
      receivers.insert(flow.to);
      to.push_back(flow.to);
    }
    CHECK(senders.size() == 50);
    CHECK(receivers.size() == 50);
    drawn.insert(to);
  }
  CHECK(drawn.size() == 3);
}

TEST_CASE("an incast has as many different senders as asked for and its receiver is none of them") {
  const FlowsWorkload incast{.pattern = FlowPattern::kIncast, .fan_in = 49, .receiver = 7};
  std::set<std::int32_t> senders;
  for (const DeviceFlow& flow : flows_of(incast, 50, {1.0}, 1)) {
    CHECK(flow.to == 7);
    senders.insert(flow.from);
  }
  CHECK(senders.size() == 49);
  CHECK(senders.count(7) == 0);
}

// From one packet to two thousand, at 400 Gb/s, where the window of 50 packets is sent before the first
// credit is there, and at 100 Gb/s, where it is not; within a leaf and across the spine.
TEST_CASE("a flow alone takes by sharing what it takes packet by packet") {
  for (const double nic : {12.5e9, 50e9}) {
    for (const double bytes : {4086.0, 64e3, 200e3, 500e3, 2e6, 8e6}) {
      for (const int to : {1, 7}) {
        World world = kHosts;
        world.nic = nic;
        world.leaf_ports = 4;
        const Cluster cluster = with_transport(world, eqds());
        CollectiveWorkload work = work_of(FlowPattern::kList);
        work.flows->list = {{0, to, {bytes}}};
        const double shared = run(work, cluster).max_s;
        CAPTURE(nic, bytes, to);
        const double half_a_packet = 4150 / nic / 2;  // what times of packets are known to
        CHECK(shared ==
              Approx(run(work, cluster, NetworkDetail::kPacket).max_s).epsilon(0.01).margin(half_a_packet));
      }
    }
  }
}

// Whatever rail a receiver is on: a NIC sends what other devices of its node have for its rail, and drops
// none.
TEST_CASE("an all-to-all over rails takes packet by packet what it takes by sharing") {
  World world = kHosts;
  world.nodes = world.per_node = 4;
  world.link = 400e9;
  const Cluster cluster = with_transport(world, eqds());
  CollectiveWorkload work = work_of(FlowPattern::kAllToAll);
  work.ranks = 16;
  CHECK(run(work, cluster, NetworkDetail::kPacket).max_s == Approx(run(work, cluster).max_s).epsilon(0.03));
}

// One channel of 10 GB/s passes what a stop of two trees sends, far longer than the wires take.
TEST_CASE("channels hold up a pipeline of packets as they do one of shared wires") {
  World world = kHosts;
  world.channel_rate = 10e9;
  const Cluster cluster = with_transport(world, eqds());
  const Layout layout = make_layout({.ranks = 8});
  Op op = communication_op(OpKind::kAllReduce, 64 * kMB, Algorithm::kTree);
  const auto time = [&](NetworkDetail detail, int channels) {
    op.units = static_cast<std::int16_t>(channels);
    const auto submissions = on_all_classes(layout, make_fragment({{op}}));
    return simulate({cluster, layout, submissions, {}, {detail, Driver::kPlain}}).seconds();
  };
  const double fluid = time(NetworkDetail::kFluid, 1);
  CHECK(fluid > 2 * 64 * kMB / 10e9);
  CHECK(time(NetworkDetail::kPacket, 1) == Approx(fluid).epsilon(0.03));
  CHECK(time(NetworkDetail::kPacket, 16) < fluid / 2);  // of so many the wires bind
}

// Packets of 9000 B with the same header waste less: 8936/9000 instead of 4086/4150, and as much credit for
// each byte of it.
TEST_CASE("a run by packets obeys the transport that its fabric names") {
  PacketTransport jumbo = eqds();
  jumbo.packet = 9000;
  World world = kHosts;
  world.nic = 12.5e9;
  CollectiveWorkload work = work_of(FlowPattern::kList);
  work.flows->list = {{0, 1, {40e6}}};
  const double large = run(work, with_transport(world, jumbo), NetworkDetail::kPacket).max_s;
  const double small = run(work, with_transport(world, eqds()), NetworkDetail::kPacket).max_s;
  CHECK(small / large == Approx(8936.0 / 9000 / (4086.0 / 4150)).epsilon(2e-3));
}
