// Elastic jobs grow, yield and shrink; what all jobs together could hold at most.
#include <algorithm>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/unit/cluster/queue_setting.h"
#include "workloads/cluster/queue/queue_bound.h"

namespace moebius {
namespace {

TEST_CASE("an elastic job shrinks to what is its own and grows again when cards are idle") {
  QueueSetting setting;
  setting.plan.scheduler.elastic = true;
  setting.plan.scheduler.settle = kHour;
  setting.plan.shapes[0].elastic = true;
  setting.add(0, 2, {}, kHour * 60);
  setting.add(1, 1, kHour * 5, kHour * 10);
  std::vector<QueueEvent::What> seen;
  const QueueCourse course = setting.run(1, {.hear = [&](const QueueEvent& event) {
                                           if (event.job == 0) seen.push_back(event.what);
                                         }});
  CHECK(course.jobs[0].preempted == 0);
  CHECK(course.jobs[0].resized == 2);
  CHECK(std::count(seen.begin(), seen.end(), QueueEvent::What::kShrunk) == 1);
  CHECK(std::count(seen.begin(), seen.end(), QueueEvent::What::kGrown) == 1);
  CHECK(course.jobs[1].first_start == kHour * 5 + Time{10'000'000'000});
}

// Two nodes, one of which two jobs of 4 cards share until one of them ends after 10 hours. The other one has
// then 20 of 30 hours left, 10 on all 8: not with 4 cards of the node beside before.
TEST_CASE("a job on a part of a node grows into the rest of that node alone") {
  QueueSetting setting;
  setting.plan.scheduler.elastic = true;
  setting.plan.shapes.clear();
  setting.add_shape(0, {4, 8});
  setting.add_shape(1, {4});
  setting.plan.shapes[0].elastic = true;
  setting.plan.pools[0].nodes = 2;
  setting.add(0, 0, {}, kHour * 30);
  setting.add(1, 0, {}, kHour * 10);
  const QueueCourse course = setting.run();
  CHECK(course.jobs[1].end == kHour * 10 + kMinute);
  CHECK(course.jobs[0].resized == 1);
  // Two starts of a minute, 10 s each to save and to load.
  CHECK(course.jobs[0].end == kHour * 20 + kMinute * 2 + Time{20'000'000'000});
}

// 64 cards become free when 5 of 20 hours are left, which take 2.5 on 128; from the beginning it would be 10.
TEST_CASE("a job grows for what is left and where nothing is saved for all of its work") {
  QueueSetting setting;
  setting.plan.scheduler.elastic = true;
  setting.plan.shapes[0].elastic = true;
  setting.add(0, 1, {}, kHour * 20);
  setting.add(1, 1, {}, kHour * 15);
  CHECK(setting.run().jobs[0].resized == 1);
  setting.cluster.checkpoint.policy = CheckpointPolicy::kNone;
  CHECK(setting.run().jobs[0].resized == 0);
}

// 8 nodes, one of which breaks for 10 hours: the job goes on with half of its cards, by state from storage,
// since others hold its parts than had them, and grows again after the repair.
TEST_CASE("a job that goes on smaller after a fault is told, and read from storage") {
  QueueSetting setting;
  setting.cluster.checkpoint.policy = CheckpointPolicy::kMemory;
  setting.cluster.checkpoint.interval = kHour;
  setting.plan.scheduler.elastic = true;
  setting.plan.shapes[0].elastic = true;
  setting.plan.pools[0].nodes = 8;
  setting.add(0, 1, {}, kHour * 200);  // all 64 cards
  setting.cluster.trace = {{.time = kHour * 5, .node = 0, .kind = 0}};
  std::vector<QueueEvent> seen;
  const QueueCourse course =
      setting.run(1, {.hear = [&](const QueueEvent& event) { seen.push_back(event); }});
  CHECK(course.jobs[0].resized == 2);
  std::vector<Time> moments;  // of the shrinking, and of going on
  for (const QueueEvent& event : seen) {
    const bool resumed = event.what == QueueEvent::What::kResumed && !moments.empty();
    if (event.what == QueueEvent::What::kShrunk || resumed) moments.push_back(event.time);
  }
  REQUIRE(moments.size() >= 2);
  CHECK(moments[1] - moments[0] == kMinute + Time{10'000'000'000});  // 100 GB at 10 GB/s
}

// 4 nodes are idle, one of them the spare: enough for the first job to grow as soon as a short one has gone.
// When a node of the other breaks it shrinks again, and grows once more when that is repaired.
TEST_CASE("an idle spare makes a job larger until a fault asks for it") {
  QueueSetting setting;
  setting.plan.scheduler.elastic = true;
  setting.plan.scheduler.settle = kHour;
  setting.plan.shapes[0].elastic = true;
  setting.plan.pools[0].spares = 1;
  setting.cluster.detection.crash.mean = kMinute;
  setting.add(0, 0, {}, kHour * 60);  // 32 cards
  setting.add(1, 1, {}, kHour * 60);  // 64 cards
  setting.add(0, 0, kHour * 4, kMinute);
  setting.cluster.trace = {{.time = kHour * 5, .node = 5, .kind = 0}};
  std::vector<std::pair<int, QueueEvent::What>> seen;
  const QueueListeners listeners{.hear = [&](const QueueEvent& event) {
    if (event.job >= 0) seen.emplace_back(event.job, event.what);
  }};
  const auto happened = [&](int job, QueueEvent::What what) {
    return std::count(seen.begin(), seen.end(), std::pair{job, what});
  };
  const QueueCourse lent = setting.run(1, listeners);
  CHECK(happened(0, QueueEvent::What::kGrown) == 2);
  CHECK(happened(0, QueueEvent::What::kShrunk) == 1);
  CHECK(happened(1, QueueEvent::What::kShrunk) == 0);
  CHECK(lent.jobs[1].interrupted == 1);
  CHECK((lent.pools[0].all() == whole(setting)));
  seen.clear();
  setting.plan.scheduler.lend_spares = false;
  setting.run(1, listeners);
  CHECK(happened(0, QueueEvent::What::kGrown) == 0);
}

// Three nodes, one of them spare: a job has one, the other has grown from one to two. A fault of the first,
// which loses all that it has, asks for the spare as one that loses a part does.
TEST_CASE("a job that loses its only node gets the spare back from who grew") {
  for (int node = 0; node < 3; ++node) {
    INFO(node);
    QueueSetting setting;
    setting.plan.scheduler.elastic = true;
    setting.plan.pools[0].nodes = 3;
    setting.plan.pools[0].spares = 1;
    setting.plan.queues = {{.name = "first", .quota = 0}, {.name = "second", .quota = 1}};
    setting.plan.shapes.clear();
    setting.add_shape(0, {8});
    setting.add_shape(1, {8, 16});
    setting.plan.shapes[1].elastic = true;
    setting.add(0, 0, {}, kHour * 90);
    setting.add(1, 0, {}, kHour * 180);
    setting.cluster.trace = {{.time = kHour * 5, .node = node, .kind = 0}};
    const QueueCourse course = setting.run();
    CHECK(course.jobs[0].interrupted + course.jobs[1].interrupted == 1);
    CHECK(course.jobs[0].longest == Time{});
    CHECK(course.jobs[0].preempted == 0);
    CHECK((course.pools[0].all() == whole(setting)));
  }
}

// Two jobs of 64 cards hold all 16 nodes, one of which breaks. Without spares nobody has any to give back:
// the first waits for the repair. With one spare it is lent, and comes back from who borrowed it.
TEST_CASE("a fault takes nodes from others only where spares are lent") {
  for (const int spares : {0, 1}) {
    INFO(spares);
    QueueSetting setting;
    setting.plan.pools[0].spares = spares;
    setting.plan.queues = {{.name = "first", .quota = 0.5}, {.name = "second", .quota = 0.5, .priority = 5}};
    setting.add(0, 1, {}, kHour * 60);
    setting.add(1, 1, {}, kHour * 60);
    setting.cluster.trace = {{.time = kHour * 5, .node = 0, .kind = 0}};
    const QueueCourse course = setting.run();
    CHECK(course.jobs[0].interrupted + course.jobs[1].interrupted == 1);
    CHECK(course.jobs[0].preempted + course.jobs[1].preempted == spares);
    CHECK((course.pools[0].all() == whole(setting)));
  }
}

// Each of 16 jobs has a node; that of the first queue breaks. The second has a better priority and no more
// than is its own.
TEST_CASE("a fault takes nothing from who holds no more than its quota") {
  QueueSetting setting;
  setting.plan.shapes.clear();
  setting.add_shape(0, {8});
  setting.add_shape(1, {8});
  setting.plan.queues = {{.name = "low", .quota = 0.0625}, {.name = "high", .quota = 0.9375, .priority = 5}};
  setting.add(0, 0, {}, kHour * 60);
  for (int i = 0; i < 15; ++i) setting.add(1, 0, {}, kHour * 60);
  for (int node = 0; node < 16; ++node) {
    setting.cluster.trace = {{.time = kHour * 5, .node = node, .kind = 0}};
    const QueueCourse course = setting.run();
    int preempted = 0;
    for (const QueueJobCourse& job : course.jobs) preempted += job.preempted;
    CHECK(preempted == 0);
  }
}

// One node: the job on all of it shrinks to half when its owner comes, who gets the other half.
TEST_CASE("a job that shrinks within a node gives back a part of it") {
  QueueSetting setting;
  setting.plan.pools[0].nodes = 1;
  setting.plan.shapes.clear();
  setting.add_shape(0, {4, 8});
  setting.add_shape(1, {4});
  setting.plan.scheduler.elastic = true;
  setting.plan.shapes[0].elastic = true;
  setting.add(0, 1, {}, kHour * 20);
  setting.add(1, 0, kHour * 5, kHour * 10);
  const QueueCourse course = setting.run();
  CHECK(course.jobs[0].preempted == 0);
  CHECK(course.jobs[1].first_start == kHour * 5 + Time{10'000'000'000});
  CHECK((course.pools[0].all() == whole(setting)));
}

// Two jobs could each do without half of a node, but two halves are no node for a replica.
TEST_CASE("nobody shrinks for a replica of whole nodes where that makes no node free") {
  QueueSetting setting;
  setting.plan.scheduler.elastic = true;
  setting.plan.shapes.clear();
  setting.add_shape(0, {4, 8});
  setting.add_shape(1, {8});
  setting.plan.shapes[0].elastic = true;
  setting.plan.shapes[1].kind = JobClass::kInference;
  setting.plan.shapes[1].preemptible = false;
  setting.plan.queues = {{.name = "first", .quota = 1}, {.name = "second", .quota = 0}};
  setting.plan.pools[0].nodes = 2;
  setting.add(0, 1, {}, kHour * 200);
  setting.add(0, 1, {}, kHour * 200);
  setting.add(1, 0, kHour * 5, kHour * 50);  // a replica
  const QueueCourse course = setting.run();
  CHECK(course.jobs[0].resized + course.jobs[1].resized == 0);
  CHECK_FALSE(course.jobs[2].started);
}

// Both quotas are full of training when a service comes that has none left: its replica gets cards of the
// elastic job, which keeps what its user asks for at least.
TEST_CASE("elastic jobs shrink for a replica that finds no cards, where that is switched on") {
  for (const bool yields : {true, false}) {
    QueueSetting setting;
    setting.plan.scheduler.elastic = true;
    setting.plan.scheduler.yields = yields;
    setting.plan.scheduler.settle = kHour;
    setting.plan.shapes[0].elastic = true;
    setting.plan.queues = {{.name = "first", .quota = 1}, {.name = "second", .quota = 0}};
    setting.add_shape(1, {32});
    setting.plan.shapes[2].kind = JobClass::kInference;
    setting.plan.shapes[2].preemptible = false;
    setting.add(0, 2, {}, kHour * 50);         // all cards
    setting.add(2, 0, kHour * 5, kHour * 10);  // a replica
    const QueueCourse course = setting.run();
    CHECK(course.jobs[1].started == yields);
    CHECK(course.jobs[0].preempted == 0);
    if (!yields) continue;
    CHECK(course.jobs[1].first_start == kHour * 5 + Time{10'000'000'000});
    CHECK((course.missing_replicas == CardTime{32} * Time{10'000'000'000}.ns));
    CHECK((course.pools[0].all() == whole(setting)));
  }
}

// A job of 64 of 128 cards for 10 of 100 hours, and its start, is all that anybody wants.
TEST_CASE("jobs that nobody makes wait hold what could be held at most, and no schedule holds more") {
  QueueSetting setting;
  setting.add(0, 1, {}, kHour * 10);
  const QueueCourse alone = setting.run();
  const auto attainable = [](const QueueSetting& of, const QueueCourse& course) {
    return attainable_allocation({.cluster = of.cluster, .plan = of.plan, .steps = of.steps, .jobs = of.jobs},
                                 course);
  };
  CHECK(attainable(setting, alone) == Approx(64.0 / 128 * (10 + 1 / 60.0) / 100));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const QueueSetting loaded = busy(1);
    const QueueCourse course = loaded.run(seed);
    CardAccounts all;
    for (const CardAccounts& pool : course.pools) all += pool;
    const auto there = static_cast<double>(all.all() - all.of(CardItem::kBroken));
    CHECK(static_cast<double>(all.held()) / there <= attainable(loaded, course) + 0.005);
  }
}

}  // namespace
}  // namespace moebius
