// Laws of kernels that the host launches.
#include <catch2/catch.hpp>

#include <algorithm>

#include "small_world.h"
#include "workloads/cost/host_calls.h"

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

// Of six kernels four are of experts, which one call launches: it takes its own time, and 6% of a call for
// each of the other three.
TEST_CASE("kernels of experts are one call of a host that launches them together") {
  Fragment fragment;
  fragment.name = "experts";
  for (const OpKind kind : {OpKind::kAdd, OpKind::kPermute, OpKind::kGroupedGemm, OpKind::kGroupedGemm,
                            OpKind::kUnpermute, OpKind::kAdd}) {
    Op op = compute_op(kind);
    op.shape = {.m = 1, .n = 1};
    if (kind != OpKind::kAdd) op.role = Role::kExperts;
    fragment.ops.push_back(op);
  }
  double calls = 0;
  for (const Op& op : fragment.ops) calls += kernel_calls(fragment, op);
  CHECK(calls == 6);
  fragment.one_expert_call = true;
  calls = 0;
  for (const Op& op : fragment.ops) calls += kernel_calls(fragment, op);
  CHECK(calls == Approx(3 + 3 * 0.06));
}

namespace {

// A kernel of 2 us, a dispatch of it that the host reads the counts of, or does not, and a kernel behind
// that.
FragmentPtr exchange(LaunchMode mode, bool counted) {
  RouteSpec spec;
  spec.ranks = spec.experts = 2;
  spec.active = 1;
  spec.tokens = 4096;
  Fragment fragment;
  fragment.name = "exchange";
  fragment.launch = mode;
  fragment.routes = {std::make_shared<const Route>(spec)};
  for (std::uint32_t key : {1, 2}) {
    Tensor tensor;
    tensor.scope = Scope::kRank;
    tensor.key = key;
    tensor.rows = tensor.columns = 1;
    fragment.tensors.push_back(tensor);
    fragment.operands.push_back(static_cast<std::int32_t>(key) - 1);
  }
  Op op = compute_op(OpKind::kAdd);
  op.shape = {.m = 1, .n = 1};
  Op dispatch = communication_op(OpKind::kDispatch, 4096, Algorithm::kHierarchical, GroupRole::kExpert);
  dispatch.route = 0;
  dispatch.num_inputs = counted ? 2 : 1;
  dispatch.num_dependencies = 1;
  Op behind = op;
  behind.first_dependency = 1;
  behind.num_dependencies = 1;
  fragment.dependencies = {0, 1};
  fragment.ops = {op, dispatch, behind};
  return freeze(std::move(fragment));
}

double seconds_of(const FragmentPtr& fragment, Time call) {
  Cluster cluster = make_cluster({.nodes = 1, .per_node = 2});
  cluster.launch = call;
  const Layout layout = make_layout({.ranks = 2, .expert = 2});
  return simulate({.cluster = cluster,
                   .layout = layout,
                   .submissions = on_all_classes(layout, fragment),
                   .costs = {{OpKind::kAdd, {kKernel}}}})
      .seconds();
}

}  // namespace

TEST_CASE("an eager host takes a call for a plain operation, and is ahead of long ones") {
  CHECK(seconds_of({chain(50, LaunchMode::kEager)}, Time{5'000}) == Approx(50 * 5e-6 + kKernel));
  CHECK(seconds_of({chain(50, LaunchMode::kEager)}, Time{1'000}) == Approx(1e-6 + 50 * kKernel));
}

// Not read: the call of the first kernel, and what the calls of the dispatch (host_calls()) take longer than
// that kernel. Read: they begin when it has ended.
TEST_CASE("a host that reads counts launches a dispatch only after what finds them") {
  const Time call{1'000};
  const double hidden = seconds_of(exchange(LaunchMode::kHidden, true), call);
  const double calls = host_calls(communication_op(OpKind::kDispatch, 1)) * call.seconds();
  CHECK(seconds_of(exchange(LaunchMode::kEager, false), call) ==
        Approx(hidden + call.seconds() + std::max(0.0, calls - kKernel)).epsilon(1e-6));
  CHECK(seconds_of(exchange(LaunchMode::kEager, true), call) ==
        Approx(hidden + call.seconds() + calls).epsilon(1e-6));
}

namespace {

// A chain as above, cut into graphs of so many kernels each; 0: one that is launched by itself.
FragmentPtr captured_chain(LaunchMode mode, const std::vector<int>& graphs) {
  Fragment fragment = *chain(1, mode);
  fragment.ops.clear();
  for (const int kernels : graphs) {
    const auto first = static_cast<std::int32_t>(fragment.ops.size());
    for (int i = 0; i < std::max(1, kernels); ++i) {
      Op op = compute_op(OpKind::kAdd);
      op.shape = {.m = 1, .n = 1};
      fragment.ops.push_back(op);
      Captured& captured = fragment.captured.emplace_back();
      if (kernels > 0) captured.first = first;
    }
    fragment.captured[first].kernels = kernels;
  }
  link_graphs(fragment.captured);
  return freeze(std::move(fragment));
}

FragmentPtr captured_exchange(const std::vector<Captured>& captured) {
  Fragment fragment = *exchange(LaunchMode::kEager, true);
  fragment.captured = captured;
  link_graphs(fragment.captured);
  return freeze(std::move(fragment));
}

}  // namespace

// A graph takes 1 ns more for each of its kernels, 2 us each. One of all: as that of a pass. Of two, the host
// is ahead of the device; where each is shorter than its launch, it is not.
TEST_CASE("a chain in graphs takes what it takes in one, but for the launches that are seen") {
  const Time call{5'000};
  const double whole = seconds_of({chain(50, LaunchMode::kGraph)}, call);
  for (const LaunchMode mode : {LaunchMode::kEager, LaunchMode::kKernel}) {
    CHECK(seconds_of({captured_chain(mode, {50})}, call) == Approx(whole + 50e-9).epsilon(1e-6));
    CHECK(seconds_of({captured_chain(mode, {25, 25})}, call) == Approx(whole + 25e-9).epsilon(1e-6));
    CHECK(seconds_of({captured_chain(mode, std::vector<int>(50, 1))}, call) ==
          Approx(50 * 5.001e-6 + kKernel).epsilon(1e-6));
    CHECK(seconds_of({captured_chain(mode, std::vector<int>(50, 0))}, call) ==
          Approx(seconds_of({chain(50, mode)}, call)).epsilon(1e-9));
  }
}

// Ten calls, a graph of 20 kernels, 20 calls.
TEST_CASE("a graph amid kernels that are launched one by one is one launch among theirs") {
  std::vector<int> parts(31, 0);
  parts[10] = 20;
  for (const LaunchMode mode : {LaunchMode::kEager, LaunchMode::kKernel})
    CHECK(seconds_of({captured_chain(mode, parts)}, Time{5'000}) ==
          Approx(31 * 5e-6 + 20e-9 + kKernel).epsilon(1e-6));
}

// As the law above, of the messages alone.
TEST_CASE("a dispatch whose preparation is captured leaves the host its messages") {
  const Time call{1'000};
  const double hidden = seconds_of(exchange(LaunchMode::kHidden, true), call);
  const Op dispatch = communication_op(OpKind::kDispatch, 1);
  CHECK(prepared_calls(dispatch) < host_calls(dispatch));
  std::vector<Captured> prepared(3);
  prepared[1].prepared = true;
  CHECK(seconds_of(captured_exchange(prepared), call) ==
        Approx(hidden + (1 + prepared_calls(dispatch)) * call.seconds()).epsilon(1e-6));
}

TEST_CASE("a host reads nothing amid a graph") {
  const Time call{1'000};
  std::vector<Captured> all(3);
  for (Captured& op : all) op.first = 0;
  all[0].kernels = 3;
  CHECK(seconds_of(captured_exchange(all), call) ==
        Approx(seconds_of(exchange(LaunchMode::kHidden, true), call) + 1.003e-6).epsilon(1e-6));
}
