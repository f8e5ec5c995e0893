// Closed forms of messages and collectives between pools that are joined through host memory.
#include <catch2/catch.hpp>
#include <sstream>

#include "hw/mixed_pools.h"
#include "sim/network/wire_meter.h"
#include "tests/laws/simulator.h"
#include "tests/laws/small_world.h"
#include "tests/process.h"
#include "workloads/study/mixed/efficiency_matrix.h"
#include "workloads/study/mixed/split_search.h"

using namespace moebius;

namespace {

// Two pools of unlike vendors; rates in bytes per second, every efficiency 1.
struct Mixed {
  int first_nodes = 1, second_nodes = 1;
  int per_node = 1;
  double link = 100e9, nic = 50e9;
  double host = 10e9;     // one device, to or from host memory
  double memory = 10e12;  // one node's host memory
  Bytes chunk{1e6};
  Forwarding forwarding = Forwarding::kCpu;
  ScaleUp scale_up = ScaleUp::kSwitch;
};

constexpr double kWire = 2.5e-6;  // host latency 2 us and one switch 0.5 us
constexpr double kCopies = 3e-6;  // an empty copy takes 1 us in the first pool, 2 us in the second

Cluster make_mixed(const Mixed& mixed) {
  const World world{
      .per_node = mixed.per_node, .link = mixed.link, .nic = mixed.nic, .scale_up = mixed.scale_up};
  const Cluster alone = make_cluster(world);
  FabricSpec spec = alone.fabric.spec();
  spec.tiers = kAutomaticTiers;
  spec.forwarding_chunk = mixed.chunk;
  std::vector<Pool> pools(2, alone.pools.front());
  std::vector<FabricPool> parts;
  for (int i = 0; i < 2; ++i) {
    Pool& pool = pools[i];
    pool.name = i == 0 ? "first" : "second";
    pool.nodes = i == 0 ? mixed.first_nodes : mixed.second_nodes;
    pool.accelerator.id = pool.accelerator.vendor = pool.name;
    pool.accelerator.host_rate = {mixed.host};
    pool.accelerator.kernel_floor = Time{1'000 * (i + 1)};
    pool.node.host_memory_rate = {mixed.memory};
    parts.push_back(part_of_fabric(pool, spec));
  }
  spec.by_host = pairs_by_host(pools, {mixed.forwarding, {}});
  return {pools, Fabric(spec, parts)};
}

struct PoolsRun {
  double seconds = 0;
  std::string binding;
};

PoolsRun reduce_between_pools(const Mixed& mixed, double bytes, Algorithm algorithm = Algorithm::kRing,
                              SimOptions options = {}) {
  const Cluster cluster = make_mixed(mixed);
  const Layout layout = make_layout({.ranks = cluster.fabric.num_devices()});
  const Op op = communication_op(OpKind::kAllReduce, bytes, algorithm);
  WireMeter meter;
  options.meter = &meter;
  const FixedCost cost({}, cluster.pools.front().accelerator.cores);
  Recorder recorder(layout, {});
  const auto executor = make_sim_executor(cluster, layout, {&cost, &cost}, recorder, options);
  std::int32_t sequence = 0;
  for (Submission submission : on_all_classes(layout, make_fragment({{op}}))) {
    submission.sequence = sequence++;
    recorder.submitted(submission);
    executor->submit(submission);
  }
  const double seconds = executor->finish().seconds();
  const NetworkUse use = meter.use();
  const auto* stage = use.slowest_stage();
  return {seconds, stage != nullptr ? stage->tier : use.binding()->tier};
}

}  // namespace

// Two ranks, one in each pool: a ring of two rounds, in each of which either sends S/2, in chunks of 1 MB.
// The slowest stage carries all bytes, S in each direction; each of the other two delays each round by one
// chunk.
TEST_CASE(
    "over a host link slower than the NIC an all-reduce takes the host link's time and two chunks a round") {
  const double bytes = 800 * kMB, chunk = kMB;
  const double round = kWire + kCopies + chunk / 10e9 + chunk / 50e9;
  for (const NetworkDetail detail : {NetworkDetail::kAlphaBeta, NetworkDetail::kFluid}) {
    const PoolsRun result = reduce_between_pools({}, bytes, Algorithm::kRing, {detail, Driver::kPlain});
    REQUIRE(result.seconds == Approx(bytes / 10e9 + 2 * round).epsilon(1e-6));
    REQUIRE(result.binding == "host link out");
  }
}

TEST_CASE("over a NIC slower than the host link the NIC binds and both copies delay a round by a chunk") {
  const double bytes = 800 * kMB, chunk = kMB;
  const PoolsRun result = reduce_between_pools({.nic = 5e9}, bytes);
  REQUIRE(result.seconds == Approx(bytes / 5e9 + 2 * (kWire + kCopies + 2 * chunk / 10e9)).epsilon(1e-6));
  REQUIRE(result.binding == "NIC out");
}

// Each byte is written to and read from the memory of either node, and each node sends S and receives S.
TEST_CASE("slow host memory binds: every byte crosses it twice at each end") {
  const double bytes = 800 * kMB, chunk = kMB;
  const PoolsRun result = reduce_between_pools({.host = 100e9, .memory = 20e9}, bytes);
  const double round = kWire + kCopies + 2 * chunk / 20e9;
  REQUIRE(result.seconds == Approx(4 * bytes / 20e9 + 2 * round).epsilon(1e-6));
  REQUIRE(result.binding == "host memory");
}

TEST_CASE("a message smaller than a chunk is stored and forwarded whole") {
  const double bytes = 200e3;  // two rounds of 100 kB
  const double round = kWire + kCopies + 100e3 / 10e9 + 100e3 / 50e9;
  REQUIRE(reduce_between_pools({}, bytes).seconds == Approx(bytes / 10e9 + 2 * round).epsilon(1e-5));
}

TEST_CASE("smaller chunks are never slower where a chunk costs nothing by itself") {
  double before = 0;
  for (const double chunk : {1e4, 1e5, 1e6, 1e7}) {
    const double seconds = reduce_between_pools({.chunk = {chunk}}, 100 * kMB).seconds;
    REQUIRE(seconds > before);
    before = seconds;
  }
}

TEST_CASE("by RDMA nothing crosses the host") {
  const PoolsRun result = reduce_between_pools({.forwarding = Forwarding::kRdma}, 800 * kMB);
  REQUIRE(result.seconds == Approx(800 * kMB / 50e9 + 2 * kWire).epsilon(1e-6));
  REQUIRE(result.binding == "NIC out");
}

// Four members in each pool (two nodes of two): S/2 to the neighbour in the node, S/4 along the rail, and a
// quarter of the buffer from each member to its counterpart and back, over its own host link.
TEST_CASE("islands reduce inside, exchange member with member, and gather inside") {
  const Mixed mixed{.first_nodes = 2, .second_nodes = 2, .per_node = 2, .host = 1e9};
  const double bytes = 400 * kMB;
  const double inside = bytes / 2 / 100e9 + 1e-6 + bytes / 4 / 50e9 + kWire;
  const double across = bytes / 4 / 1e9 + 2 * (kWire + kCopies + kMB / 1e9 + kMB / 50e9);
  const PoolsRun result = reduce_between_pools(mixed, bytes, Algorithm::kHierarchical);
  REQUIRE(result.seconds == Approx(2 * inside + across).epsilon(1e-5));
  REQUIRE(result.binding == "host link out");
  // A ring over all nodes carries half of 2 * 7/8 of the buffer over each host link at the border.
  const double ring = reduce_between_pools(mixed, bytes, Algorithm::kRing).seconds;
  REQUIRE(ring > 7.0 / 8 * bytes / 1e9);
  REQUIRE(reduce_between_pools(mixed, bytes, Algorithm::kAuto).seconds == result.seconds);
}

// Of two nodes of n devices with a link between any two: everyone's n-th to everyone inside, on n - 1 links
// at once, and an n-th of the buffer across. Of up to 32 members messages are listed, of more they are
// counted.
TEST_CASE("islands of full meshes pay for what they do inside, however many stand in a node") {
  const double bytes = 4000 * kMB;
  for (const int n : {16, 32, 40}) {
    const Mixed mixed{.per_node = n, .host = 10e9, .scale_up = ScaleUp::kFullMesh};
    const double inside = (n - 1) * bytes / n / 100e9 + 1e-6;
    const double across = bytes / n / 10e9 + 2 * (kWire + kCopies + kMB / 10e9 + kMB / 50e9);
    REQUIRE(reduce_between_pools(mixed, bytes, Algorithm::kHierarchical).seconds ==
            Approx(2 * inside + across).epsilon(1e-4));
  }
}

// Two devices in the first pool and four in the second: a member of the first exchanges its half with two.
TEST_CASE("islands of different sizes exchange by their overlapping shares") {
  const Mixed mixed{.first_nodes = 2, .second_nodes = 4, .host = 1e9};
  const double bytes = 400 * kMB;
  const PoolsRun result = reduce_between_pools(mixed, bytes, Algorithm::kHierarchical);
  const double across = bytes / 2 / 1e9 + 2 * (kWire + kCopies + kMB / 1e9 + kMB / 50e9);
  const double inside = 3 * bytes / 4 / 50e9 + 3 * kWire;  // the larger island's is the longer
  REQUIRE(result.seconds == Approx(2 * inside + across).epsilon(1e-5));
}

TEST_CASE("an all-reduce between pools is faster by RDMA than through host memory") {
  const Mixed direct{.first_nodes = 2, .second_nodes = 2, .per_node = 2, .forwarding = Forwarding::kRdma};
  Mixed forwarded = direct;
  forwarded.forwarding = Forwarding::kCpu;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kHierarchical}) {
    REQUIRE(reduce_between_pools(direct, 100 * kMB, algorithm).seconds <
            reduce_between_pools(forwarded, 100 * kMB, algorithm).seconds);
  }
}

// Nodes whose switches reduce send fewer bytes than a ring: a share is of what the wires must carry.
TEST_CASE("no row of an efficiency matrix exceeds the peak that it is a share of") {
  const auto run = test::run_moebius("matrix h100-sxm a100-sxm");
  REQUIRE(run.exit_code == 0);
  std::istringstream words(run.out);
  int shares = 0;
  for (std::string word; words >> word;) {
    if (word.back() != '%') continue;
    ++shares;
    CHECK(std::stod(word) <= 100);
  }
  CHECK(shares > 40);
}

TEST_CASE("a matrix is of the chip as it was changed, and of its slower wires") {
  const Library library("");
  const FabricSpec fabric = library.hardware.fabric("rail-optimised-clos-roce");
  const auto rows = [&](const char* chip, const char* node, double link) {
    Pool pool;
    pool.name = "a";
    pool.accelerator = library.hardware.accelerator(chip);
    pool.node = library.hardware.node(node);
    pool.nodes = 2;
    if (link > 0) pool.accelerator.link_rate = ByteRate{link};
    EfficiencyMatrix matrix{chip, node, {}};
    add_network(pool, fabric, library, simulator(NetworkDetail::kAlphaBeta), matrix);
    for (const EfficiencyRow& row : matrix.rows) CHECK(row.efficiency() <= 1);
    return matrix.rows;
  };
  CHECK(rows("h800-sxm", "hgx-8", 50e9)[2].rate < 0.5 * rows("h800-sxm", "hgx-8", 0)[2].rate);  // all-gather
  CHECK(rows("gb200-nvl72", "gb200-nvl72", 0)[4].kind == EfficiencyKind::kLink);
}

// Four hosts of each pool, of which one is simulated: all groups that it stands for cross theirs alike.
TEST_CASE("a folded run has the host memories of all nodes in its table") {
  const Library library("");
  const auto host_memory = [&](bool unfold) {
    Document scenario = parse_document(
        R"({"moebius": 1, "kind": "training", "name": "m", "model": {"base": "qwen2.5-32b", "layers": 4},
      "cluster": {"pools": [{"name": "a", "accelerator": "ascend-910b", "node": "ascend-910b-8", "nodes": 4},
        {"name": "k", "accelerator": "kunlun-p800", "node": "kunlun-8", "nodes": 4}],
        "fabric": {"type": "rail-optimised-clos-roce"}},
      "plan": {"tp": {"attention": 8, "sequence_parallel": true}, "pp": {"degree": 2}, "dp": {"degree": 4},
        "memory": "report"},
      "workload": {"sequence_length": 1024, "global_batch": 8}})",
        "m.json");
    Job job = read_job(std::move(scenario), {.sets = {}, .seed = {}, .unfold = unfold}, library);
    const Outcome run = perform(job, simulator(NetworkDetail::kFluid), {.wants_spans = false, .quiet = true});
    for (const TierUse& tier : run.report.facts.network->tiers)
      if (tier.tier == "host memory") return tier;
    return TierUse{};
  };
  const TierUse folded = host_memory(false), unfolded = host_memory(true);
  CHECK(unfolded.ports == 8);
  CHECK(folded.ports == unfolded.ports);
  CHECK(folded.bytes == Approx(unfolded.bytes));
  CHECK(folded.capacity == Approx(unfolded.capacity));
  CHECK(folded.longest == Approx(unfolded.longest));
}

TEST_CASE("a job is split whatever its pools' messages go by") {
  const Library library("");
  Document scenario = parse_document(
      R"({"moebius": 1, "kind": "training", "name": "m", "model": {"base": "llama-3.1-8b", "layers": 8},
    "cluster": {"pools": [{"name": "a", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 1},
      {"name": "b", "accelerator": "ascend-910b", "node": "ascend-910b-8", "nodes": 1}],
      "fabric": {"type": "rail-optimised-clos-roce"}, "forwarding_pairs": [{"from": "a", "to": "b", "forwarding": "cpu"}]},
    "plan": {"tp": {"attention": 2, "sequence_parallel": true}, "pp": {"degree": 2}, "dp": {"degree": 4}},
    "workload": {"sequence_length": 2048, "global_batch": 32}})",
      "m.json");
  const StartExecutor start = simulator(NetworkDetail::kAlphaBeta);
  const SplitStudy study = study_split({"m.json", std::move(scenario), library, start, 1});
  CHECK(study.parts.size() == 2);
  CHECK(study.efficiency() > 0.5);
}
