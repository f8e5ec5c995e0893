// Jobs, faults and recovery: every nanosecond is somewhere, and simple courses are those that arithmetic
// gives.
#include "workloads/cluster/cluster_run.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/unit/cluster/one_job.h"

namespace moebius {
namespace {

using namespace literals;
using one_job::only_job;
using one_job::plan;
using one_job::sum;

TEST_CASE("without faults a job computes but for its checkpoints") {
  const JobCourse course = only_job(plan());
  // 98 whole cycles of 61 minutes are 99.633 h; 22 minutes of the next.
  CHECK(course.checkpoints == 98);
  CHECK(course.of(TimeItem::kCheckpoint) == Time{98 * 60'000'000'000});
  CHECK(course.of(TimeItem::kProductive) + course.of(TimeItem::kCheckpoint) == Time{100 * kHour.ns});
}

// At 10.5 h: 10 cycles of 61 min are 610 of 630 minutes, so 20 minutes are lost.
TEST_CASE("a node that fails costs detection and the way back and the work since the last checkpoint") {
  ClusterPlan one = plan();
  one.trace = {{{630 * 60'000'000'000}, 2, 0}};
  const JobCourse course = only_job(one);
  CHECK(course.total() == 1);
  CHECK(course.of(TimeItem::kRecomputed) == Time{20 * 60'000'000'000});
  CHECK(course.of(TimeItem::kDetection) == 60_s);
  CHECK(course.of(TimeItem::kIsolation) == 30_s);
  CHECK(course.of(TimeItem::kReplacement) == 300_s);
  CHECK(course.of(TimeItem::kRestart) == 150_s);  // 90 s and 600 GB from storage
  CHECK(course.of(TimeItem::kWaiting) == Time{});
  CHECK(sum(course) == Time{100 * kHour.ns});
}

// 120 d of work at a thousandth of the speed, or with a minute's stall after each millisecond: longer than
// clocks run.
TEST_CASE("work that would end after all clocks does not end") {
  ClusterPlan slow = plan();
  slow.duration = kHour * 24 * 300;
  slow.jobs[0].work = kHour * 24 * 120;
  slow.faults.push_back({.name = "drag", .effect = FailureEffect::kSlow, .slow_factor = 1000});
  slow.detection.slow.mean = slow.duration;
  slow.trace = {{kHour, 1, 2}};
  ClusterPlan often = plan();
  often.jobs[0].work = kHour * 24 * 10;
  often.checkpoint.interval = {1'000'000};
  for (const ClusterPlan& of : {slow, often}) {
    const JobCourse course = only_job(of);
    CHECK_FALSE(course.done);
    CHECK(course.end == of.duration);
    CHECK(sum(course) == of.duration);
  }
}

// After 10 h of work, when the last checkpoint is in storage and another step has not been done.
TEST_CASE("a step that storage has is not done again for a state that is saved on a signal") {
  ClusterPlan one = plan();
  one.checkpoint.triggered = 1;
  one.jobs[0].step = kHour;
  one.trace = {{{610 * 60'000'000'000}, 2, 1}};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    INFO(seed);
    CHECK(only_job(one, seed).of(TimeItem::kRecomputed) == Time{});
  }
}

TEST_CASE("a fault of software takes no node") {
  ClusterPlan one = plan();
  one.trace = {{{630 * 60'000'000'000}, 2, 1}};
  const JobCourse course = only_job(one);
  CHECK(course.of(TimeItem::kReplacement) == Time{});
  CHECK(course.of(TimeItem::kRecomputed) == Time{20 * 60'000'000'000});
}

// The second node fails an hour after the first one, which is 10 h in repair: the job waits until then.
TEST_CASE("without a spare a job waits for a repair") {
  ClusterPlan two = plan();
  two.trace = {{{10 * kHour.ns}, 0, 0}, {{11 * kHour.ns}, 1, 0}};
  const JobCourse course = only_job(two);
  CHECK(course.of(TimeItem::kWaiting) == Time{9 * kHour.ns} - 90_s);
  CHECK(sum(course) == Time{100 * kHour.ns});
}

TEST_CASE("state saved on a failure's signal leaves nothing to do again but a step") {
  ClusterPlan one = plan();
  one.checkpoint.triggered = 1;
  one.jobs[0].step = 20_s;
  one.trace = {{{630 * 60'000'000'000}, 2, 1}};  // of software: all ranks are there to save
  const JobCourse course = only_job(one);
  CHECK(course.of(TimeItem::kRecomputed) <= 20_s);
  one.trace[0].kind = 0;  // of a node: what it held is gone
  CHECK(only_job(one).of(TimeItem::kRecomputed) == Time{20 * 60'000'000'000});
}

// Copies in peers' memory every ten minutes: after 100 minutes and one second of stalls the last one is in
// place.
TEST_CASE("copies in peers' memory survive one node and not two of them") {
  ClusterPlan memory = plan();
  memory.checkpoint.policy = CheckpointPolicy::kMemory;
  memory.checkpoint.interval = {600'000'000'000};
  memory.jobs[0].state = {
      32e9};  // 1 GB a device: a second to the host, one more to the peer, 3.2 s to storage
  memory.trace = {{{6'300'000'000'000}, 2, 0}};
  // Cycles of 601 s: 10 of them and 290 s.
  CHECK(only_job(memory).of(TimeItem::kRecomputed) == 290_s);
  CHECK(only_job(memory).of(TimeItem::kRestart) ==
        92_s);                 // 90 s, and a second each from the peer and the host
  memory.faults[0].nodes = 2;  // nodes 2 and 3 at once
  memory.nodes = 6;
  const JobCourse both = only_job(memory);
  CHECK(both.of(TimeItem::kRecomputed) == 290_s);  // storage had the same copy 3.2 s later
  // A quarter of an hour to storage takes every second copy; the 9th would be there at 5,408 + 901 s, the 7th
  // is.
  memory.checkpoint.storage = {32e9 / 900};
  CHECK(only_job(memory).of(TimeItem::kRecomputed) == Time{(6290 - 7 * 600) * 1'000'000'000LL});
  CHECK(only_job(memory).of(TimeItem::kRestart) == 990_s);  // which storage alone has
}

// As above with storage that takes a quarter of an hour. The second node breaks while the job waits for the
// repair of the first, and while the new node is made ready.
TEST_CASE("copies in peers' memory do not survive a second node before the job runs again") {
  ClusterPlan memory = plan();
  memory.checkpoint.policy = CheckpointPolicy::kMemory;
  memory.checkpoint.interval = {600'000'000'000};
  memory.jobs[0].state = {32e9};
  memory.checkpoint.storage = {32e9 / 900};
  memory.trace = {{{6'300'000'000'000}, 2, 0}, {{6'500'000'000'000}, 3, 0}};
  for (const int nodes : {4, 6}) {
    INFO(nodes << " nodes");
    memory.nodes = nodes;
    const JobCourse course = only_job(memory);
    CHECK(course.of(TimeItem::kRecomputed) == Time{(6290 - 7 * 600) * 1'000'000'000LL});
    CHECK(course.of(TimeItem::kRestart) == 990_s);
    CHECK(sum(course) == Time{100 * kHour.ns});
  }
}

TEST_CASE("a slow node costs time until it is found and no work") {
  ClusterPlan slow = plan();
  slow.faults[0].effect = FailureEffect::kSlow;
  slow.faults[0].slow_factor = 2;
  slow.detection.slow.mean = {2 * kHour.ns};
  slow.trace = {{{10 * kHour.ns}, 2, 0}};
  const JobCourse course = only_job(slow);
  CHECK(course.of(TimeItem::kRecomputed) == Time{});
  // Of two hours 118 or 119 minutes were computed, half of them for nothing.
  CHECK(course.of(TimeItem::kSlowed).seconds() == Approx(3600).epsilon(0.02));
  CHECK(sum(course) == Time{100 * kHour.ns});
}

// Slow for an hour; then the node breaks, and with it the slowness is gone: half of some 59 minutes.
TEST_CASE("a slow node that breaks is not slow any more") {
  ClusterPlan slow = plan();
  slow.faults[1] = {.name = "slow", .effect = FailureEffect::kSlow, .slow_factor = 2};
  slow.detection.slow.mean = {50 * kHour.ns};
  slow.trace = {{{10 * kHour.ns}, 2, 1}, {{11 * kHour.ns}, 2, 0}};
  CHECK(only_job(slow).of(TimeItem::kSlowed).seconds() == Approx(1800).epsilon(0.04));
}

// Slow for an hour; then it is started again, whatever for, which is enough: half of some 59 minutes.
TEST_CASE("software that is slow is not slow any more after a restart") {
  ClusterPlan slow = plan();
  slow.faults.push_back({.name = "slow", .effect = FailureEffect::kSlow, .nodes = 0, .slow_factor = 2});
  slow.detection.slow.mean = {50 * kHour.ns};
  slow.trace = {{{10 * kHour.ns}, 2, 2}, {{11 * kHour.ns}, 2, 1}};
  const JobCourse course = only_job(slow);
  CHECK(course.of(TimeItem::kSlowed).seconds() == Approx(1800).epsilon(0.04));
  CHECK(course.total() == 2);
  CHECK(sum(course) == Time{100 * kHour.ns});
}

// Once in 11 hours: one after the last was found, 10 hours after it came. 22,000 hours: 2,000 and some 60
// around it. When the work is done nobody looks any more.
TEST_CASE("a job's own software is slow once at a time") {
  ClusterPlan slow = plan();
  slow.duration = {22'000 * kHour.ns};
  slow.faults = {{.name = "software",
                  .unit = FailureUnit::kJob,
                  .per_hour = 1,
                  .effect = FailureEffect::kSlow,
                  .nodes = 0,
                  .slow_factor = 2}};
  slow.detection.slow.mean = {10 * kHour.ns};
  slow.recovery = {};
  slow.jobs[0].state = {1};
  CHECK(std::abs(only_job(slow).total() - 2000) < 60);
}

TEST_CASE("without checkpoints a slow node costs all work") {
  ClusterPlan none = plan();
  none.checkpoint.policy = CheckpointPolicy::kNone;
  none.faults[0].effect = FailureEffect::kSlow;
  none.faults[0].slow_factor = 2;
  none.detection.slow.mean = {2 * kHour.ns};
  none.trace = {{{10 * kHour.ns}, 2, 0}};
  CHECK(only_job(none).of(TimeItem::kRecomputed) == Time{11 * kHour.ns});
}

// Wrong from 10 h on, known at 15 h: back to the last checkpoint before that, the 9th at 549 minutes.
TEST_CASE("results that were wrong are thrown away back to a checkpoint from before") {
  ClusterPlan silent = plan();
  silent.faults[0].effect = FailureEffect::kSilent;
  silent.detection.silent.mean = {5 * kHour.ns};
  silent.trace = {{{10 * kHour.ns}, 2, 0}};
  const JobCourse course = only_job(silent);
  CHECK(course.of(TimeItem::kRecomputed) > Time{5 * kHour.ns});
  CHECK(course.of(TimeItem::kRecomputed) < Time{6 * kHour.ns});
  CHECK(sum(course) == Time{100 * kHour.ns});
}

// Wrong from 10 h on. The node breaks at 12 h, and what was saved at 11 h stays wrong until that is known at
// 15 h; where it breaks at 10 h 5 min, the job goes back to before, and all is well.
TEST_CASE("results that were wrong stay wrong without the node that made them") {
  ClusterPlan silent = plan();
  silent.faults[1] = {.name = "silent", .effect = FailureEffect::kSilent};
  silent.detection.silent.mean = {5 * kHour.ns};
  silent.trace = {{{10 * kHour.ns}, 2, 1}, {{12 * kHour.ns}, 2, 0}};
  const JobCourse broken = only_job(silent);
  CHECK(broken.of(TimeItem::kRecomputed) > Time{5 * kHour.ns});
  CHECK(broken.of(TimeItem::kRecomputed) < Time{6 * kHour.ns});
  CHECK(sum(broken) == Time{100 * kHour.ns});
  silent.trace.back().time = Time{10 * kHour.ns} + 300_s;
  const JobCourse soon = only_job(silent);
  CHECK(soon.of(TimeItem::kRecomputed) == Time{10 * kHour.ns} + 300_s - Time{549 * 60'000'000'000});
  CHECK(soon.total() == 2);
}

TEST_CASE("a job ends when its work is done and the next one gets its nodes") {
  ClusterPlan two = plan();
  two.jobs[0].work = {10 * kHour.ns};
  two.jobs.push_back({.name = "b", .nodes = 5, .work = {kHour.ns}, .state = {600e9}});
  const ClusterCourse course = run_cluster(two, 1);
  CHECK(course.jobs[0].done);
  CHECK(course.jobs[0].end ==
        Time{10 * kHour.ns} + Time{9 * 60'000'000'000});  // nine checkpoints, none at the end
  CHECK(course.jobs[1].of(TimeItem::kQueued) == course.jobs[0].end);
  CHECK(course.jobs[1].end == course.jobs[0].end + kHour);
}

// 10 nodes: a has 6 for a day, d the other 4 from 1 h to 13 h; b, which came before c, waits for 6 of them,
// and c behind it, in whatever order they stand in the file.
TEST_CASE("jobs get nodes in the order of their arrival") {
  ClusterPlan four = plan();
  four.nodes = 10;
  four.checkpoint.policy = CheckpointPolicy::kNone;
  four.jobs = {{.name = "a", .nodes = 6, .work = kHour * 24},
               {.name = "b", .nodes = 6, .arrival = kHour * 2, .work = kHour * 48},
               {.name = "c", .nodes = 4, .arrival = kHour * 3, .work = kHour * 12},
               {.name = "d", .nodes = 4, .arrival = kHour, .work = kHour * 12}};
  for (const bool reversed : {false, true}) {
    INFO(reversed);
    if (reversed) std::reverse(four.jobs.begin(), four.jobs.end());
    const ClusterCourse course = run_cluster(four, 1);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string& name = four.jobs[i].name;
      const Time queued = name == "b" ? kHour * 22 : name == "c" ? kHour * 21 : Time{};
      CHECK(course.jobs[i].of(TimeItem::kQueued) == queued);
    }
  }
}

TEST_CASE("who arrives at the same time as another has not waited") {
  ClusterPlan two = plan();
  two.jobs = {{.name = "a", .nodes = 2, .arrival = kHour * 5, .work = kHour, .state = {600e9}},
              {.name = "b", .nodes = 2, .arrival = kHour * 5, .work = kHour, .state = {600e9}}};
  const ClusterCourse both = run_cluster(two, 1);
  for (const JobCourse& course : both.jobs) {
    CHECK(course.of(TimeItem::kQueued) == Time{});
    CHECK(sum(course) == kHour);
  }
}

// Steps of an hour, saved when the step is over that runs after 90 minutes: not before 2 h.
TEST_CASE("there is state to save only at the end of a step") {
  ClusterPlan one = plan();
  one.checkpoint.interval = Time{90 * 60'000'000'000};
  one.jobs[0].step = kHour;
  one.trace = {{Time{100 * 60'000'000'000}, 2, 1}};
  CHECK(only_job(one).of(TimeItem::kRecomputed) == Time{100 * 60'000'000'000});
  CHECK(only_job(one).interval == kHour * 2);
}

// Whatever happens, every nanosecond of a job is in exactly one item, and no item is negative.
TEST_CASE("items of a job add up to its time whatever happens") {
  ClusterPlan many = plan();
  many.nodes = 64;
  many.duration = {1000 * kHour.ns};
  many.faults = {{.name = "gpu", .per_hour = 0.01, .repair = {{20 * kHour.ns}, 1}},
                 {.name = "link", .per_hour = 0.01, .effect = FailureEffect::kHang, .nodes = 0},
                 {.name = "slow",
                  .per_hour = 0.005,
                  .effect = FailureEffect::kSlow,
                  .repair = {{5 * kHour.ns}, 0.5},
                  .slow_factor = 1.5},
                 {.name = "silent", .per_hour = 0.002, .effect = FailureEffect::kSilent},
                 {.name = "switch", .per_hour = 0.002, .nodes = 8, .repair = {{2 * kHour.ns}, 0}},
                 {.name = "code", .unit = FailureUnit::kJob, .per_hour = 0.05, .nodes = 0}};
  many.detection = {.recall = 0.5,
                    .monitored = {10_s, 0.5},
                    .crash = {60_s, 1},
                    .hang = {600_s, 0.5},
                    .slow = {kHour, 1},
                    .silent = {{30 * kHour.ns}, 1}};
  many.jobs = {
      {.name = "a", .nodes = 40, .state = {6e12}},
      {.name = "b", .nodes = 20, .work = {100 * kHour.ns}, .step = 10_s, .state = {1e12}},
      {.name = "c", .nodes = 30, .arrival = {50 * kHour.ns}, .work = {40 * kHour.ns}, .state = {1e12}}};
  for (const CheckpointPolicy policy : {CheckpointPolicy::kNone, CheckpointPolicy::kSync,
                                        CheckpointPolicy::kAsync, CheckpointPolicy::kMemory}) {
    many.checkpoint.policy = policy;
    many.checkpoint.triggered = policy == CheckpointPolicy::kMemory ? 0.9 : 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const ClusterCourse course = run_cluster(many, seed);
      for (std::size_t i = 0; i < course.jobs.size(); ++i) {
        INFO("policy " << static_cast<int>(policy) << ", seed " << seed << ", job " << i);
        CHECK(sum(course.jobs[i]) == course.jobs[i].end - many.jobs[i].arrival);
        for (const Time item : course.jobs[i].items) CHECK(item >= Time{});
        if (course.jobs[i].done) CHECK(course.jobs[i].of(TimeItem::kProductive) == many.jobs[i].work);
      }
      CHECK(course.busy_node_s + course.down_node_s <= 64 * many.duration.seconds() * (1 + 1e-9));
    }
  }
}

TEST_CASE("equal seeds make equal courses and others do not") {
  ClusterPlan many = plan();
  many.faults[0].per_hour = 0.05;
  many.nodes = 20;
  const auto lost = [&](std::uint64_t seed) { return only_job(many, seed).of(TimeItem::kRecomputed); };
  CHECK(lost(1) == lost(1));
  CHECK(lost(1) != lost(2));
}

// 16 nodes, 0.01 faults of a node an hour, 10,000 hours: 1,600 expected, and 4 times the root of that around
// it.
TEST_CASE("faults come as often as their rate says") {
  ClusterPlan many = plan();
  many.nodes = 20;
  many.duration = {10'000 * kHour.ns};
  many.jobs[0].nodes = 16;
  many.faults = {{.name = "f", .per_hour = 0.01, .nodes = 0}};
  many.detection = {};
  many.recovery = {};
  many.jobs[0].state = {1};
  CHECK(std::abs(only_job(many).total() - 1600) < 160);
}

// ---- checkpoints ----

// Young: sqrt(2 x 60 x 7200) = 929.5 s. Daly's next terms make it 918 s: 929.5 (1 + 0.0215 + 0.0005) - 60 +
// ...
TEST_CASE("faults and repairs beyond all clocks do not come") {
  ClusterPlan rare = plan();
  rare.faults[0].per_hour = 1e-18;
  CHECK(only_job(rare).total() == 0);
  // Of mean 31 years, and often a hundred times as long.
  RandomStream random(1);
  const Delay repair{{999'993'600'000'000'000}, 4};
  for (int i = 0; i < 10'000; ++i) REQUIRE(repair.draw(random) <= Time{1'000'000'000'000'000'000});
}

// Every 10 minutes a fault that is survived, and then results of the first hour turn out to be wrong.
}  // namespace
}  // namespace moebius
