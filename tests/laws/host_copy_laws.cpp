// Copies between devices and the memory of their host: each device has a link, the devices of a node share
// the memory.
#include <catch2/catch.hpp>

#include "sim/network/stand_ins.h"
#include "tests/laws/small_world.h"
#include "workloads/training/layers/builder.h"

namespace moebius {
namespace {

constexpr double kLink = 50e9, kMemory = 200e9, kBytes = 1e9;

Cluster cluster_with_host(int nodes) {
  Cluster cluster = make_cluster({.nodes = nodes});
  Pool pool = cluster.pools.front();
  pool.accelerator.host_rate = {kLink};
  pool.node.host_memory_rate = {kMemory};
  const FabricSpec spec = cluster.fabric.spec();
  return {{pool}, Fabric(spec, {part_of_fabric(pool, spec)})};
}

Tensor tensor_of(bool on_host, std::uint32_t key) {
  return {.scope = Scope::kRank,
          .memory = MemoryKind::kOptimizer,
          .dtype = DType::kFp32,
          .key = key,
          .rows = static_cast<std::int64_t>(kBytes / 4),
          .columns = 1,
          .on_host = on_host};
}

// Copies of kBytes, each on the lane of its direction.
FragmentPtr copies(const std::vector<OpKind>& kinds) {
  FragmentBuilder builder("copies", Phase::kOptimizer);
  std::uint32_t key = 0;
  for (const OpKind kind : kinds) {
    const bool out = kind == OpKind::kCopyToHost;
    const TensorId device = builder.add(tensor_of(false, key++)), host = builder.add(tensor_of(true, key++));
    Op op{.kind = kind, .lane = out ? Lane::kHostStore : Lane::kHostCopy, .shape = {.m = 1}};
    op.payload = {kBytes};
    builder.emit(op, {out ? device : host}, {out ? host : device});
  }
  return builder.freeze_it();
}

double seconds(int ranks, bool fold, const std::vector<OpKind>& kinds) {
  const Cluster cluster = cluster_with_host(2);
  const Layout layout = make_layout({.ranks = ranks, .fold = fold});
  return simulate({cluster, layout, on_all_classes(layout, copies(kinds))}).seconds();
}

}  // namespace

TEST_CASE("a copy to or from the host takes its bytes over the device's link") {
  for (const OpKind kind : {OpKind::kCopyToHost, OpKind::kCopyFromHost})
    CHECK(seconds(1, false, {kind}) == Approx(kBytes / kLink).epsilon(1e-6));
}

TEST_CASE("copies in both directions run side by side, two of one direction one after the other") {
  CHECK(seconds(1, false, {OpKind::kCopyToHost, OpKind::kCopyFromHost}) ==
        Approx(kBytes / kLink).epsilon(1e-6));
  CHECK(seconds(1, false, {OpKind::kCopyToHost, OpKind::kCopyToHost}) ==
        Approx(2 * kBytes / kLink).epsilon(1e-6));
}

// Eight devices ask for 400 GB/s of a memory that gives 200: 25 GB/s each. A second node has a memory of its
// own.
TEST_CASE("the devices of a node share the memory of their host, folded as well as one by one") {
  for (const bool fold : {false, true}) {
    CHECK(seconds(8, fold, {OpKind::kCopyToHost}) == Approx(8 * kBytes / kMemory).epsilon(1e-6));
    CHECK(seconds(16, fold, {OpKind::kCopyToHost}) == Approx(8 * kBytes / kMemory).epsilon(1e-6));
  }
}

TEST_CASE("folded, the memory of one host stands for those of all nodes in accounts") {
  const Cluster cluster = cluster_with_host(4);
  const Layout layout = make_layout({.ranks = 32, .fold = true});
  REQUIRE(layout.classes.size() == 1);
  const std::int32_t device = layout.device_of_rank[layout.classes.front().representative()];
  const StandIns stand_ins(cluster.fabric, layout);
  CHECK(stand_ins.times({WireKind::kHostOut, device}) == 32);
  CHECK(stand_ins.times({WireKind::kHostMemory, device / 8 * 8}) == 4);
}

}  // namespace moebius
