// Which launches of which submission end when, on one host.
#include "sim/launches.h"

#include "tests/catch.h"

namespace moebius {
namespace {

Fragment plain(int ops, Lane lane) {
  Fragment fragment;
  fragment.launch = LaunchMode::kEager;
  Op op;
  op.kind = OpKind::kAdd;
  op.lane = lane;
  fragment.ops.assign(ops, op);
  return fragment;
}

// What the host's loader reads needs no call: it is over before the host, busy with what came before, would
// look at it, and what is submitted next has its slot.
TEST_CASE("a slot that changes hands while an eager host is busy keeps its calls") {
  const Fragment busy = plain(3, Lane::kCompute), load = plain(1, Lane::kLoader),
                 next = plain(2, Lane::kCompute);
  Launches launches(1, Time{1'000});
  launches.add(busy, 0, 0, Time{});
  launches.add(load, 0, 1, Time{});
  launches.add(next, 0, 1, Time{});
  std::vector<std::pair<int, int>> ended;
  while (launches.next_event() < kForever) {
    Launches::Launched launched;
    const Time now = launches.next_event();
    while (launches.pop(now, launched)) ended.emplace_back(launched.slot, launched.op);
  }
  CHECK(ended == std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}});
}

// Ops 1 and 2 are a graph: one launch, of which the host tells by the first of them, and 1 ns for each.
TEST_CASE("a graph's launch is that of its first op") {
  Fragment fragment = plain(4, Lane::kCompute);
  fragment.captured.resize(4);
  fragment.captured[1].first = fragment.captured[2].first = 1;
  fragment.captured[1].kernels = 2;
  link_graphs(fragment.captured);
  CHECK(fragment.next_in_graph(1) == 2);
  CHECK(fragment.next_in_graph(2) == -1);
  for (const LaunchMode mode : {LaunchMode::kEager, LaunchMode::kKernel}) {
    fragment.launch = mode;
    for (std::size_t op = 0; op < 4; ++op) CHECK(Launches::launches_of(fragment, op) == 1);
    Launches launches(1, Time{1'000});
    launches.add(fragment, 0, 0, Time{});
    std::vector<std::pair<int, std::int64_t>> ended;
    while (launches.next_event() < kForever) {
      Launches::Launched launched;
      const Time now = launches.next_event();
      while (launches.pop(now, launched)) ended.emplace_back(launched.op, now.ns);
    }
    CHECK(ended == std::vector<std::pair<int, std::int64_t>>{{0, 1'000}, {1, 2'002}, {3, 3'002}});
  }
}

}  // namespace
}  // namespace moebius
