// Which place of a job a node has, when nodes come and go.
#include "workloads/cluster/cluster_run.h"

#include "tests/catch.h"

namespace moebius {
namespace {

using namespace literals;

// The first node comes back and fills the place of the second: when it fails again that is the place it had.
TEST_CASE("a repaired node that fills another's place leaves that one when it fails") {
  ClusterPlan two;
  two.duration = {100 * kHour.ns};
  two.nodes = 2;
  two.checkpoint = {.policy = CheckpointPolicy::kSync, .choice = IntervalChoice::kGiven, .interval = kHour};
  two.checkpoint.storage = {10e9};
  two.faults = {{.name = "gpu", .repair = {{2 * kHour.ns}, 0}}};
  two.jobs = {{.name = "a", .nodes = 2, .state = {600e9}}};
  constexpr std::int64_t kMinute = 60'000'000'000;
  two.trace = {
      {{600 * kMinute}, 0, 0}, {{605 * kMinute}, 1, 0}, {{722 * kMinute}, 0, 0}, {{900 * kMinute}, 1, 0}};
  const JobCourse course = run_cluster(two, 1).jobs.at(0);
  CHECK(course.total() == 2);  // who waits for nodes is not interrupted once more
  Time all;
  for (const Time item : course.items) all = all + item;
  CHECK(all == Time{100 * kHour.ns});
  // Without a spare: two hours for each of the first two, overlapping, and of the others.
  CHECK(course.of(TimeItem::kWaiting) > Time{5 * kHour.ns});
  CHECK(course.of(TimeItem::kWaiting) < Time{7 * kHour.ns});
}

}  // namespace
}  // namespace moebius
