// Flows under a receiver-driven transport on small fabrics, against closed forms. Links of 100 Gb/s and 1 us:
// a full packet of 4150 B takes 0.332 us on each, a header of 64 B 0.00512 us.
#include <catch2/catch.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>

#include "sim/network/calendar.h"
#include "sim/network/network.h"
#include "sim/network/packet_flows.h"
#include "sim/network/packet_table.h"
#include "tests/process.h"

namespace moebius {
namespace {

// 16 hosts on 4 leaves of 4, each with `uplinks` to as many spines.
Fabric two_tiers(int uplinks, Routing routing = Routing::kSpray) {
  PacketRow row;
  row.hosts = 16;
  row.spec.type = "clos";
  row.spec.rail_optimised = false;
  row.spec.tiers = 2;
  row.spec.leaf_ports = 4;
  row.spec.leaf_uplinks = uplinks;
  row.spec.switch_ports = 16;
  row.spec.oversubscription = 4.0 / uplinks;
  row.spec.transport_efficiency = 1;
  row.spec.routing = routing;
  row.spec.transport.ideal = false;
  return row.fabric({});
}

std::vector<double> run(const Fabric& fabric, const std::vector<PacketFlow>& flows) {
  return run_packet_flows(fabric, {}, flows, 7).completion;
}

TEST_CASE("one packet pays every link and its acknowledgement comes back") {
  // 4 links between leaves: 4 (1 + 0.332) us there, 4 (1 + 0.00512) us back.
  CHECK(run(two_tiers(4), {{0, 15, 4086}}).front() == Approx(9.34848e-6).epsilon(1e-6));
  // 2 links under one leaf.
  CHECK(run(two_tiers(4), {{0, 1, 4086}}).front() == Approx(4.67424e-6).epsilon(1e-6));
}

TEST_CASE("a long flow has the payload share of its credit") {
  const PacketTransport transport;
  // 4086 of 4150 B are payload; each pull grants 4096 B in the time of 4156 B.
  CHECK(transport.efficiency() == Approx(0.9703).epsilon(1e-4));
  const double seconds = run(two_tiers(4), {{0, 15, 80e6}}).front();
  CHECK(80e6 / seconds == Approx(12.5e9 * transport.efficiency()).epsilon(0.003));
}

TEST_CASE("senders to one host share its pulls evenly") {
  // 3 x 979 packets, each 0.33687 us of pulls: 989.4 us, but the 85 that leave or fill the port's queue in
  // the first 16.6 us need none (28.6 us), and the last packet has 9.3 us to go and come back.
  for (const double seconds : run(two_tiers(4), {{4, 0, 4e6}, {8, 0, 4e6}, {12, 0, 4e6}}))
    CHECK(seconds == Approx(989.4e-6 - 28.6e-6 + 16.6e-6 + 9.3e-6).epsilon(0.003));
}

TEST_CASE("the first windows of an incast are trimmed and sent again") {
  // Of 15 x 50 packets at line rate, 50 leave by the receiver's port in that time and 35 wait there.
  std::vector<PacketFlow> flows;
  for (int from = 1; from < 16; ++from) flows.push_back({from, 0, 2e6});
  const PacketFlowTimes times = run_packet_flows(two_tiers(4), {}, flows, 7);
  CHECK(times.packets == 15 * 490);
  CHECK(static_cast<double>(times.resent) > 0.5 * (15 * 50 - 85));
  CHECK(static_cast<double>(times.resent) < 1.1 * (15 * 50 - 85));
}

TEST_CASE("flows that hash to one port share it by what arrives there") {
  // Hosts 0 and 1 (a leaf of four) send to other leaves by spine 0: each has half of the port, less what the
  // pulls of nobody else take. By different spines both are undisturbed.
  const Fabric fabric = two_tiers(4);
  const double alone = run(fabric, {{0, 4, 4e6, 0}}).front();
  const std::vector<double> same = run(fabric, {{0, 4, 4e6, 0}, {1, 8, 4e6, 0}});
  const std::vector<double> apart = run(fabric, {{0, 4, 4e6, 0}, {1, 8, 4e6, 1}});
  CHECK(std::max(same[0], same[1]) == Approx(2 * alone).epsilon(0.08));
  CHECK(apart[0] == Approx(alone).epsilon(0.002));
  CHECK(apart[1] == Approx(alone).epsilon(0.002));
}

TEST_CASE("a shared uplink of four senders trims in proportion and is never idle") {
  // 4 x 4 MB through one uplink: 1320 us at the line's payload rate of 12.31 GB/s; headers of trimmed packets
  // and waiting for a resend cost up to a tenth.
  std::vector<PacketFlow> flows;
  for (int from = 0; from < 4; ++from) flows.push_back({from, 4 + from, 4e6});
  const PacketFlowTimes times = run_packet_flows(two_tiers(1), {}, flows, 7);
  const double last = *std::max_element(times.completion.begin(), times.completion.end());
  CHECK(last > 16e6 / (12.5e9 * 4086 / 4150));
  CHECK(last < 1.1 * 16e6 / (12.5e9 * 4086 / 4150));
  CHECK(times.resent > 2 * times.packets);  // four arrive for one that leaves
}

// 245 packets of 4086 B at 1 GB/s: 244 pauses of 4.086 us, then the last packet's way and its answer's.
TEST_CASE("a flow sends no faster than its rate") {
  const double seconds =
      run(two_tiers(4), {{.from = 0, .to = 15, .bytes = 245 * 4086.0, .most_rate = 1e9}}).front();
  CHECK(seconds == Approx(244 * 4.086e-6 + 9.348e-6).epsilon(1e-3));
}

// 10 us a message: the first packet of each flow leaves when its message is posted; under a leaf none is.
TEST_CASE("a NIC posts the messages of its flows one after the other") {
  PacketRow row;
  row.hosts = 16;
  row.spec = two_tiers(4).spec();
  row.spec.message_time = Time{10'000};
  std::vector<PacketFlow> flows;
  for (const int to : {5, 10, 15}) flows.push_back({.from = 0, .to = to, .bytes = 4086, .messages = 1});
  flows.push_back({.from = 1, .to = 6, .bytes = 4086, .messages = 0.5});  // half of one
  const std::vector<double> times = run(row.fabric({}), flows);
  for (int i = 0; i < 3; ++i) CHECK(times[i] == Approx((i + 1) * 10e-6 + 9.348e-6).margin(0.2e-6));
  CHECK(times[3] == Approx(5e-6 + 9.348e-6).margin(0.2e-6));
}

// 60 short flows leave one NIC: by the second round the first answers are there, and what follows needs
// credit. 15 receivers pull four flows each, those heard first the most often, so that flows end long before
// all are sent (60 x 5 packets: 80 us) and not all together at the end, as rounds at the sender would have
// it.
TEST_CASE("a sender that has been heard sends on credit alone") {
  std::vector<PacketFlow> flows;
  for (int i = 0; i < 60; ++i) flows.push_back({0, 1 + i % 15, 16384});
  const std::vector<double> times = run(two_tiers(4), flows);
  CHECK(*std::max_element(times.begin(), times.end()) == Approx(60 * 16704 / 12.5e9 + 9e-6).epsilon(0.05));
  CHECK(*std::min_element(times.begin(), times.end()) < 75e-6);
}

TEST_CASE("adaptive switches keep flows apart that hashes let meet") {
  // Each host of a leaf sends to another leaf: four uplinks for four flows.
  std::vector<PacketFlow> flows;
  for (int from = 0; from < 16; ++from) flows.push_back({from, (from + 4) % 16, 2e6});
  const auto last = [&](Routing routing) {
    const std::vector<double> times = run(two_tiers(4, routing), flows);
    return *std::max_element(times.begin(), times.end());
  };
  const double alone = run(two_tiers(4), {flows.front()}).front();
  CHECK(last(Routing::kAdaptive) < 1.1 * alone);
  CHECK(last(Routing::kEcmp) > 1.5 * alone);
}

TEST_CASE("a fabric without a transport has no packets") {
  PacketRow row;
  row.hosts = 16;
  row.spec = two_tiers(4).spec();
  row.spec.transport.ideal = true;
  CHECK_THROWS_WITH(make_packet_network(row.fabric({}), 7, nullptr),
                    "the packet network needs to know what a packet is, but the fabric's transport is "
                    "\"ideal\": name \"transport\": \"eqds\", or use fluid");
}

TEST_CASE("the same seed gives the same times") {
  std::vector<PacketFlow> flows;
  for (int from = 0; from < 16; ++from) flows.push_back({from, (from + 5) % 16, 1e6});
  CHECK(run(two_tiers(2), flows) == run(two_tiers(2), flows));
}

// When each transfer ends; `starts`: transfer i begins so many seconds after time 0.
std::vector<double> run_steps(const Fabric& fabric, const std::vector<Step>& steps,
                              const std::vector<Time>& starts) {
  const std::unique_ptr<Network> network = make_packet_network(fabric, 7, nullptr);
  std::vector<double> ends(steps.size());
  std::vector<std::int32_t> ended;
  std::size_t begun = 0;
  for (Time now{}; now < kForever;
       now = std::min(network->next_event(), begun < steps.size() ? starts[begun] : kForever)) {
    network->advance(now, ended);
    for (const std::int32_t transfer : ended) ends[transfer] = now.seconds();
    ended.clear();
    for (; begun < steps.size() && starts[begun] <= now; ++begun)
      network->start(static_cast<std::int32_t>(begun), steps[begun], begun, now);
  }
  return ends;
}

Step one_message(int from, int to, double bytes) {
  Step step;
  step.pairs.push_back({from, to, bytes});
  return step;
}

TEST_CASE("a transfer ends when its last byte is there and the next one begins after any pause") {
  const Step step = one_message(0, 15, 4086);
  const std::vector<double> ends = run_steps(two_tiers(4), {step, step}, {{0}, {1'000'000}});
  // 4 (1 + 0.332) us, to half a packet.
  CHECK(ends[0] == Approx(5.328e-6).margin(0.2e-6));
  CHECK(ends[1] == Approx(1005.328e-6).margin(0.2e-6));
}

TEST_CASE("transfers that meet at a receiver share it") {
  const Fabric fabric = two_tiers(4);
  const std::vector<double> ends =
      run_steps(fabric, {one_message(4, 0, 4e6), one_message(8, 0, 4e6)}, {{0}, {0}});
  // 8 MB at the payload rate of 12.13 GB/s.
  CHECK(std::max(ends[0], ends[1]) == Approx(8e6 / (12.5e9 * PacketTransport{}.efficiency())).epsilon(0.02));
}

// Device 10 has rail 6 of its node, which a node of four does not reach: NIC 4 receives for it, and sends.
TEST_CASE("a NIC sends and receives for devices on other rails of its node") {
  FabricSpec spec = two_tiers(4).spec();
  spec.rail_optimised = true;
  spec.tiers = kAutomaticTiers;
  FabricPool four;
  four.nodes = 1;
  four.devices_per_node = 4;
  four.link_rate = {100e9};
  four.nic_rate = {12.5e9};
  FabricPool eight = four;
  eight.devices_per_node = 8;
  const Fabric fabric(spec, {four, eight});
  // Two links under one leaf, as above.
  CHECK(run(fabric, {{0, 10, 4086}}).front() == Approx(4.67424e-6).epsilon(1e-6));
  CHECK(run(fabric, {{10, 0, 4086}}).front() == Approx(4.67424e-6).epsilon(1e-6));
}

TEST_CASE("a sprayed message leaves by both ports of its NIC") {
  for (const Routing routing : {Routing::kSpray, Routing::kAdaptive}) {
    const Fabric one_port = two_tiers(4, routing);
    FabricSpec spec = one_port.spec();
    spec.nic_ports = 2;
    const Fabric fabric(spec, one_port.pools());
    const std::vector<Step> steps{one_message(0, 15, 8e6)};
    const std::vector<Time> starts{Time{0}};
    // 8 MB at the payload rate of 12.13 GB/s, which the ports share.
    const double seconds = 8e6 / (12.5e9 * PacketTransport{}.efficiency());
    CHECK(run_steps(fabric, steps, starts).front() == Approx(seconds).epsilon(0.03));
  }
}

TEST_CASE("a calendar gives events bucket by bucket") {
  Calendar calendar(1.0);
  calendar.reach(10);
  calendar.push({9.5, 1, 0});
  calendar.push({2.5, 2, 0});
  calendar.push({0.5, 3, 0});
  calendar.push({2.1, 4, 0});  // of the bucket of 2.5, added later
  calendar.reach(1000);
  calendar.push({900, 5, 0});
  std::vector<int> order;
  while (calendar.next_time() < 1e9) order.push_back(calendar.pop().what);
  CHECK(order == std::vector<int>{3, 2, 4, 1, 5});
}

constexpr const char* kHeader =
    "id,fabric,hosts,pattern,flow_bytes,routing,endpoints,mean_fct_us,p50_fct_us,p99_fct_us,max_fct_us,"
    "data_packets,retransmitted_packets\n";

std::string refusal(const std::string& row) {
  const test::Scratch scratch;
  const std::string path = scratch.write("packet_rows.csv", kHeader + row + "\n");
  try {
    read_packet_table(path);
  } catch (const std::exception& error) {
    return std::string(error.what()).substr(path.size());
  }
  return "";
}

TEST_CASE("a table's row is read or refused at its column") {
  const std::string rest = ",10,10,10,10,1,0";
  CHECK(refusal("a,2t tor=4d4u spine=4d,16,x,4086,spray,0>15" + rest) == "");
  CHECK(refusal("a,2t tor=4d4u spine=4d,16,x,4086,spray,members 0 5 15" + rest) == "");
  CHECK(refusal("a,2t tor=4x4u spine=4d,16,x,4086,spray,0>15" + rest) ==
        ":2: fabric: expected links as in tor=8d4u, found \"tor=4x4u\"");
  CHECK(refusal("a,2t tor=4d4u spine=4d,16,x,4086,spray,0>16" + rest) ==
        ":2: endpoints: expected a number from 0 to 15, found \"16\"");
  CHECK(refusal("a,2t tor=4d4u spine=4d,16,x,4086,hash,0>15" + rest) ==
        ":2: routing: expected spray, ecmp_flow or adaptive, found \"hash\"");
  CHECK(refusal("a,3t tor=4d4u core=4d,16,x,4086,spray,0>15" + rest) ==
        ":2: fabric: expected links of every tier, found \"3t tor=4d4u core=4d\"");
  CHECK(refusal("a,2t tor=4d4u spine=4d,16,x,1+2+3,spray,0>15 1>14" + rest) ==
        ":2: flow_bytes: expected one size or 2, found \"1+2+3\"");
}

// 2 x 50 packets leave one NIC in 33.2 us; both are heard before.
TEST_CASE("flows of just their first window end beside each other") {
  const PacketTransport transport;
  const double bytes = transport.window * transport.payload();
  for (const double seconds : run(two_tiers(4), {{0, 5, bytes}, {0, 6, bytes}})) {
    CHECK(seconds > 30e-6);
    CHECK(seconds < 45e-6);
  }
}

// 500 first windows arrive at a host that sends itself: 25,000 headers, each answered over its NIC.
TEST_CASE("a host that very many send to goes on sending") {
  PacketRow row;
  row.hosts = 501;
  row.spec = two_tiers(4).spec();
  row.spec.leaf_ports = row.spec.switch_ports = 1024;
  row.spec.leaf_uplinks = 1024;
  row.spec.oversubscription = 1;
  std::vector<PacketFlow> flows;
  for (int from = 1; from <= 500; ++from) flows.push_back({from, 0, 3e5});
  flows.push_back({0, 1, 4e6});
  const std::vector<double> times = run(row.fabric({.latency = Time{4000}}), flows);
  CHECK(times.back() > 4e6 / 12.5e9);
  CHECK(*std::min_element(times.begin(), times.end()) > 0);
}

}  // namespace
}  // namespace moebius
