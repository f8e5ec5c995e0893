// What fused neighbours cost.
#include <catch2/catch.hpp>

#include "../unit/training/small_job.h"
#include "small_world.h"
#include "workloads/schedule/recorder.h"

using namespace moebius;

namespace {

// A sum of 1 MB, then a norm of it, one rank; the sum is read by another op too where `kept`.
FragmentPtr pair(bool fused, bool kept) {
  Fragment fragment;
  fragment.name = "pair";
  for (int i = 0; i < 4; ++i) fragment.tensors.push_back({.rows = 1000, .columns = 500});  // bf16: 1 MB
  const auto add = [&](OpKind kind, std::vector<std::int32_t> operands) {
    Op op = compute_op(kind);
    op.shape = {.m = 1000, .n = 500};
    op.first_tensor = static_cast<std::int32_t>(fragment.operands.size());
    op.num_inputs = static_cast<std::uint8_t>(operands.size() - 1);
    op.num_outputs = 1;
    fragment.operands.insert(fragment.operands.end(), operands.begin(), operands.end());
    fragment.ops.push_back(op);
  };
  add(OpKind::kActivation, {0, 0});
  fragment.ops.back().num_inputs = 0;
  fragment.ops.back().first_tensor = 1;
  add(OpKind::kAdd, {0, 1});
  add(OpKind::kNorm, {1, 2});
  fragment.ops.back().fused = fused;
  if (kept) add(OpKind::kActivation, {1, 3});
  return freeze(std::move(fragment));
}

double seconds_of(bool fused, bool kept) {
  const Cluster cluster = make_cluster({.nodes = 1, .per_node = 1, .memory_rate = 1e12});
  const Layout layout = make_layout(LayoutSpec{.ranks = 1});
  return simulate(
             {.cluster = cluster,
              .layout = layout,
              .submissions = on_all_classes(layout, pair(fused, kept)),
              .costs = {{OpKind::kAdd, {50e-6}}, {OpKind::kNorm, {50e-6}}, {OpKind::kActivation, {1e-6}}}})
      .seconds();
}

}  // namespace

// A megabyte passes a memory of 1 TB/s in a microsecond: not read again, and, where nothing else reads it,
// not written. One kernel begins and ends less.
TEST_CASE("a fused pair saves reading what lies between, and writing it where nothing else reads it") {
  const Cluster cluster = make_cluster({.nodes = 1, .per_node = 1});
  const double floor = cluster.pools.front().accelerator.kernel_floor.seconds();
  CHECK(seconds_of(false, false) - seconds_of(true, false) == Approx(floor + 2e-6).epsilon(0.01));
  CHECK(seconds_of(false, true) - seconds_of(true, true) == Approx(floor + 1e-6).epsilon(0.01));
}
