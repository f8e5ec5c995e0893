// Laws of kernels that the host launches.
#include <catch2/catch.hpp>

#include "small_world.h"

using namespace moebius;

namespace {

constexpr double kKernel = 2e-6;

// A chain of `count` kernels of 2 us on one rank.
FragmentPtr chain(int count, LaunchMode mode) {
  Fragment fragment;
  fragment.name = "chain";
  for (int i = 0; i < count; ++i) {
    Op op = compute_op(OpKind::kAdd);
    op.shape = {.m = 1, .n = 1};
    fragment.ops.push_back(op);
  }
  fragment.launch = mode;
  return freeze(std::move(fragment));
}

double seconds_of(const std::vector<FragmentPtr>& fragments, Time launch) {
  Cluster cluster = make_cluster({.nodes = 1, .per_node = 1});
  cluster.launch = launch;
  const Layout layout = make_layout(LayoutSpec{.ranks = 1});
  std::vector<Submission> submissions;
  for (const FragmentPtr& fragment : fragments) submissions.push_back({.fragment = fragment, .after = {}});
  return simulate({.cluster = cluster,
                   .layout = layout,
                   .submissions = submissions,
                   .costs = {{OpKind::kAdd, {kKernel}}}})
      .seconds();
}

}  // namespace

// Each kernel ends 2 us after its launch: the last one after all launches.
TEST_CASE("kernels shorter than their launches take as long as the launches") {
  CHECK(seconds_of({chain(50, LaunchMode::kKernel)}, Time{5'000}) == Approx(50 * 5e-6 + kKernel));
  CHECK(seconds_of({chain(50, LaunchMode::kHidden)}, Time{5'000}) == Approx(50 * kKernel));
}

// The first launch is seen; from then on the host is ahead.
TEST_CASE("launches shorter than their kernels cost the first one") {
  CHECK(seconds_of({chain(50, LaunchMode::kKernel)}, Time{1'000}) == Approx(1e-6 + 50 * kKernel));
}

TEST_CASE("a captured graph is launched once, behind the one that runs") {
  const FragmentPtr graph = chain(50, LaunchMode::kGraph);
  CHECK(seconds_of({graph}, Time{5'000}) == Approx(5e-6 + 50 * kKernel));
  CHECK(seconds_of({graph, graph, graph}, Time{5'000}) == Approx(5e-6 + 150 * kKernel));
  // Graphs shorter than their launch wait for it.
  CHECK(seconds_of({chain(1, LaunchMode::kGraph), chain(1, LaunchMode::kGraph)}, Time{5'000}) ==
        Approx(2 * 5e-6 + kKernel));
}
