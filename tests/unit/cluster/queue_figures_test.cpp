// Figures of queues: what load does to them, what services make at lower clocks, what a cap leaves.
#include "workloads/cluster/queue/queue_figures.h"

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/unit/cluster/queue_setting.h"
#include "workloads/cluster/queue/queue_bound.h"
#include "workloads/report/queue_picture.h"
#include "workloads/report/report.h"
#include "workloads/report/report_queues.h"

namespace moebius {
namespace {

QueueFigures figures_of(const QueueSetting& setting) {
  return queue_figures(
      {.cluster = setting.cluster, .plan = setting.plan, .steps = setting.steps, .jobs = setting.jobs}, 1);
}

double allocation_of(const QueueCourse& course) {
  CardAccounts all;
  for (const CardAccounts& pool : course.pools) all += pool;
  return static_cast<double>(all.held()) / static_cast<double>(all.all());
}

double attainable_of(const QueueSetting& setting, const QueueCourse& course) {
  return attainable_allocation(
      {.cluster = setting.cluster, .plan = setting.plan, .steps = setting.steps, .jobs = setting.jobs},
      course);
}

// A service of one replica of 8 cards in the second queue, which makes a token a second and computes all the
// time; it starts in 70 s.
void add_service(QueueSetting& setting) {
  setting.add_shape(1, {8});
  JobShape& shape = setting.plan.shapes.back();
  shape.kind = JobClass::kInference;
  shape.preemptible = false;
  shape.night = 1;
  setting.plan.load.noise = 0;
  ShapeStep& step = setting.steps.at(2, 0, 0);
  step.seconds = 1e6;
  step.tokens_per_s = 1;
}

// 64 kW, and 6 more while the 8 cards compute.
void add_power(QueueSetting& setting) {
  setting.plan.pools[0].node_power = {10'000};
  setting.plan.pools[0].overhead_power = {2'000};
  setting.cluster.power = {.busy = 1, .idle = 0.25, .pue = 1};
}

const CardTime kServiceTime = CardTime{8} * (kHour * 10 - Time{70'000'000'000}).ns;

TEST_CASE("a service makes half of its tokens at half of the clock") {
  QueueSetting setting;
  add_service(setting);
  add_power(setting);
  setting.add(2, 0, {}, kHour * 10);
  CHECK(setting.run().jobs[0].tokens == Approx(36'000 - 70));
  setting.plan.caps = {{.from = {}, .until = kForever, .watts = {64'750}}};  // 64 + 6 x 0.5^3
  const QueueCourse capped = setting.run();
  CHECK(capped.jobs[0].tokens == Approx((36'000 - 70) / 2.0));
  CHECK((capped.pools[0].of(CardItem::kServed) == kServiceTime / 2));
  CHECK((capped.pools[0].of(CardItem::kSlowed) == kServiceTime / 2));
}

TEST_CASE("a service on a slow node makes fewer tokens until that is found") {
  QueueSetting setting;
  add_service(setting);
  setting.cluster.faults = {{.name = "slow", .effect = FailureEffect::kSlow, .slow_factor = 2}};
  setting.cluster.detection.slow.mean = kHour * 100;
  setting.cluster.trace = {{.time = kHour * 5, .node = 0, .kind = 0}};
  setting.add(2, 0, {}, kHour * 10);
  CHECK(setting.run().jobs[0].tokens == Approx(5 * 3600 - 70 + 5 * 3600 / 2.0));
}

// Half as fast from 5 h on; at 6 h something else starts it again, which is enough. Starting: 70 s each time.
TEST_CASE("a service whose software is slow is not slow any more after a restart") {
  QueueSetting setting;
  add_service(setting);
  setting.cluster.faults = {
      {.name = "slow", .effect = FailureEffect::kSlow, .nodes = 0, .slow_factor = 2},
      {.name = "crash", .nodes = 0}};
  setting.cluster.detection.slow.mean = kHour * 100;
  setting.cluster.trace = {{.time = kHour * 5, .node = 0, .kind = 0},
                           {.time = kHour * 6, .node = 0, .kind = 1}};
  setting.add(2, 0, {}, kHour * 10);
  CHECK(setting.run().jobs[0].tokens == Approx(5 * 3600 - 70 + 3600 / 2.0 + 4 * 3600 - 70));
}

// All cards of the first pool are taken; the second is half as fast again, so that one replica's demand asks
// for two there.
TEST_CASE("no more is allocated than is attainable where replicas stand on slower chips") {
  QueueSetting setting;
  setting.plan.queues = {{.name = "first", .quota = 1}, {.name = "second", .quota = 1}};
  setting.plan.pools.push_back({.name = "b", .nodes = 16, .nodes_per_leaf = 4});
  add_service(setting);
  setting.plan.shapes[2].pools = {0, 1};
  setting.steps.at(0, 0, 2).seconds = 1;
  setting.steps.at(2, 1, 0).seconds = 1.5e6;
  setting.add(0, 2, {}, kHour * 1000);
  setting.add(2, 0, kMinute, kHour * 1000);
  const QueueCourse course = setting.run();
  CHECK(course.pools[1].held() > CardTime{15} * setting.cluster.duration.ns);
  CHECK(allocation_of(course) <= attainable_of(setting, course) + 1e-9);
}

// At night one of two replicas is wanted, at half the clock two.
TEST_CASE("no more is allocated than is attainable where a cap lowers clocks") {
  QueueSetting setting;
  setting.cluster.duration = kHour * 8;
  add_service(setting);
  add_power(setting);
  setting.plan.shapes[2].night = 0;
  setting.plan.caps = {{.from = {}, .until = kForever, .watts = {64'800}}};  // two at 0.4: 64,768
  setting.add(2, 0, {}, kHour * 1000);
  setting.jobs[0].replicas = 2;
  const QueueCourse course = setting.run();
  CHECK(course.pools[0].held() > CardTime{15} * (kHour * 6).ns);
  CHECK(allocation_of(course) <= attainable_of(setting, course) + 1e-9);
}

TEST_CASE("no power above a cap is counted that lasted for no time") {
  QueueSetting setting;
  add_power(setting);
  setting.add(0, 2, {}, kHour * 1000);
  setting.plan.caps = {{.from = {}, .until = setting.cluster.duration, .watts = {76'000}}};
  CHECK(setting.run().peak_w <= 76'000 * (1 + 1e-9));
}

// The second of two jobs that fill a queue never starts: it has waited and lasted to the end at least. Nobody
// comes to the other queue.
TEST_CASE("jobs that wait to the end count with what they have waited") {
  QueueSetting setting;
  setting.plan.scheduler.partition = PartitionRule::kStatic;
  setting.add(0, 1, {}, kHour * 200);
  setting.add(0, 1, kHour * 20, kHour * 10);
  const QueueFigures figures = figures_of(setting);
  CHECK(figures.queues[0].wait_max_s.mean == Approx(80 * 3600));
  CHECK(figures.queues[0].slowdown_p95.mean == Approx(8));
  CHECK(figures.queues[0].slowdown_p50.mean == Approx(8));  // the upper one of two
  CHECK_FALSE(figures.queues[1].wait_p50_s.known);
  CHECK_FALSE(figures.queues[1].slowdown_p50.known);
  CHECK_THAT(queues_text(figures), Catch::Contains("-         -         -         -        0"));
}

// A minute is 0.02 of a pixel of 30 days.
TEST_CASE("power that stays is drawn as it is from the pixel in which it came") {
  Scenario scenario;
  scenario.operations.emplace().queueing = std::make_shared<QueuePlan>(QueueSetting().plan);
  QueueFigures figures;
  figures.duration_s = 30 * 86'400.0;
  figures.cards = 128;
  figures.course.jobs.push_back({});
  figures.course.spans.push_back({.cards = 128, .begin = kMinute, .end = kHour * 720});
  figures.course.power = {{Time{}, 10'000}, {kMinute, 20'000}};
  Report report;
  report.scenario = &scenario;
  report.queues = std::make_shared<QueueFigures>(figures);
  const std::string svg = queues_svg(report);
  CHECK_THAT(svg, Catch::Contains(R"(width="1024" height="80" fill="#c9a227")"));
  CHECK_THAT(svg, !Catch::Contains(R"(height="40" fill="#c9a227")"));
}

TEST_CASE("a queue without a quota has no share of it") {
  QueueSetting setting;
  setting.plan.queues = {{.name = "first", .quota = 0}, {.name = "second", .quota = 1}};
  setting.add(0, 1, {}, kHour * 10);
  const QueueFigures figures = figures_of(setting);
  CHECK(figures.borrowed.mean > 0);
  CHECK_FALSE(figures.queues[0].held.known);
  CHECK(figures.queues[1].held.known);
  CHECK_THAT(queues_text(figures), Catch::Contains("first                  1       1       1         -"));
}

// Half of the shape's card time is of a pool without a price: its tokens have no cost to stand beside.
TEST_CASE("what tokens cost is not known where some of their cards have no price") {
  QueueSetting setting;
  setting.plan.pools.push_back({.name = "b", .nodes = 16, .nodes_per_leaf = 4});
  setting.plan.pools[0].card_price = {2};
  setting.plan.shapes[0].pools = {0, 1};
  setting.plan.scheduler.chips = ChipRule::kFirst;
  setting.steps = ShapeSteps(setting.plan);
  for (const int pool : {0, 1}) {
    setting.steps.at(0, pool, 2).seconds = 1;
    setting.steps.at(0, pool, 2).tokens_per_s = 1000;
  }
  setting.add(0, 2, {}, kHour * 10);
  const QueueFigures one = figures_of(setting);
  CHECK(*one.shapes[0].usd_per_million_tokens() == Approx(1e6 * 2 * 128 * (10 + 1 / 60.0) / 36e6));
  setting.add(0, 2, {}, kHour * 10);
  const QueueFigures two = figures_of(setting);
  CHECK_FALSE(two.shapes[0].cost_usd.known);
  CHECK_FALSE(two.shapes[0].usd_per_million_tokens());
  CHECK_THAT(queues_text(two), Catch::Contains("; - USD a million tokens"));
}

// No cards are left for it: it waits to its own end, and not to that of all time.
TEST_CASE("a service that nobody served waits until it ends and is not done") {
  QueueSetting setting;
  add_service(setting);
  setting.plan.queues = {{.name = "first", .quota = 1}, {.name = "second", .quota = 0}};
  setting.plan.shapes[0].preemptible = false;
  setting.add(0, 2, {}, kHour * 1000);
  setting.add(2, 0, kHour, kHour * 10);
  const QueueFigures figures = figures_of(setting);
  CHECK(figures.queues[1].wait_p50_s.mean == Approx(36'000));
  CHECK(figures.queues[1].longest_wait_s.mean == Approx(36'000));
  CHECK(figures.queues[1].done.mean == 0);
  CHECK_FALSE(figures.queues[1].slowdown_p50.known);
}

// Two and a half replicas are asked for by day and night: three are up, and make what is asked for.
TEST_CASE("a service makes no more tokens than it is asked for") {
  QueueSetting setting;
  add_service(setting);
  setting.plan.shapes[2].night = 0;
  setting.cluster.duration = kHour * 240;
  setting.add(2, 0, {}, kHour * 240);
  setting.jobs[0].replicas = 5;
  const QueueCourse course = setting.run();
  CHECK(course.jobs[0].tokens == Approx(2.5 * 864'000).epsilon(0.001));
  CHECK(course.jobs[0].tokens <= 2.5 * 864'000);
  CHECK((course.jobs[0].cards > CardTime{8} * 3 * setting.cluster.duration.ns * 95 / 100));
}

// At the lowest clock a job of 64 cards draws 3.07 kW, which the first 10 hours leave for one of them.
TEST_CASE("a job does not start while a cap could not be kept with it") {
  QueueSetting setting;
  add_power(setting);
  setting.plan.caps = {{.from = {}, .until = kHour * 10, .watts = {68'000}}};
  setting.add(0, 1, {}, kHour * 20);
  setting.add(1, 1, {}, kHour * 20);
  const QueueCourse course = setting.run();
  CHECK(course.jobs[0].first_start == Time{});
  CHECK(course.jobs[1].first_start == kHour * 10);
  CHECK((course.pools[0].of(CardItem::kPower) == CardTime{64} * (kHour * 10).ns));
  CHECK(course.over_cap_s == 0);
  CHECK((course.pools[0].all() == whole(setting)));
}

// Storage alone has it after two nodes broke, and gives it back in 10 s; peers and hosts take 3.125 s.
TEST_CASE("state that only storage has comes back at its speed") {
  for (const int nodes : {1, 2}) {
    QueueSetting setting;
    setting.cluster.checkpoint.policy = CheckpointPolicy::kMemory;
    setting.cluster.checkpoint.interval = kHour;
    setting.cluster.faults[0].nodes = nodes;
    setting.cluster.trace = {{.time = kHour * 5 + kMinute * 30, .node = 0, .kind = 0}};
    setting.add(0, 1, {}, kHour * 10);
    const Time load{nodes == 1 ? 3'125'000'000 : 10'000'000'000};
    CHECK((setting.run().pools[0].of(CardItem::kStarting) == CardTime{64} * (kMinute * 2 + load).ns));
  }
}

}  // namespace
}  // namespace moebius
