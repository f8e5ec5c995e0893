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

}  // namespace
}  // namespace moebius
