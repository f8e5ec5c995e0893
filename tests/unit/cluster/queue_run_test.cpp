// Queues of a cluster: every nanosecond of every card is somewhere, idle quota is lent and taken back, jobs
// pass others only where that delays nobody.
#include "tests/unit/cluster/queue_setting.h"

#include <algorithm>

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

TEST_CASE("a job alone has its cards for its start and its work and nobody else has any") {
  QueueSetting setting;
  setting.add(0, 1, kHour, kHour * 10);
  const QueueCourse course = setting.run();
  const CardAccounts& cards = course.pools[0];
  CHECK(cards.of(CardItem::kUseful) == CardTime{64} * (kHour * 10).ns);
  CHECK(cards.of(CardItem::kStarting) == CardTime{64} * kMinute.ns);
  CHECK(cards.of(CardItem::kIdle) == whole(setting) - CardTime{64} * (kHour * 10 + kMinute).ns);
  CHECK(course.jobs[0].done);
  CHECK(course.jobs[0].end == kHour * 11 + kMinute);
}

TEST_CASE("a static partition keeps the second job of a queue waiting beside idle cards") {
  QueueSetting setting;
  setting.plan.scheduler.partition = PartitionRule::kStatic;
  setting.add(0, 1, {}, kHour * 10);
  setting.add(0, 1, {}, kHour * 10);
  const QueueCourse course = setting.run();
  CHECK(course.jobs[1].first_start == kHour * 10 + kMinute);
  CHECK(course.pools[0].of(CardItem::kQuota) == CardTime{64} * (kHour * 10 + kMinute).ns);
  CHECK(course.beyond_quota == 0);
  // Lent, both start at once.
  setting.plan.scheduler.partition = PartitionRule::kBorrow;
  CHECK(setting.run().jobs[1].first_start == Time{});
}

TEST_CASE("what was lent comes back as soon as the state of its job is in storage") {
  QueueSetting setting;
  setting.add(0, 2, {}, kHour * 20);         // the whole cluster, half of it borrowed
  setting.add(1, 1, kHour * 5, kHour * 10);  // its owner
  const QueueCourse course = setting.run();
  const Time saved = kHour * 5 + Time{10'000'000'000};
  CHECK(course.jobs[1].first_start == saved);
  CHECK(course.jobs[0].preempted == 1);
  // It has computed from minute 1 to hour 5, 20 hours on 64 of its sizes being 10 on 128: the rest when the
  // owner is done, after a start with 10 s of loading.
  const Time again = saved + kMinute + kHour * 10;
  CHECK(course.jobs[0].end == again + kMinute + Time{10'000'000'000} + kHour * 20 - (kHour * 5 - kMinute));
  CHECK(course.kept_from_owner == 0);
}

TEST_CASE("who gives back what was lent begins anew where nothing is saved") {
  QueueSetting setting;
  setting.cluster.checkpoint.policy = CheckpointPolicy::kNone;
  setting.add(0, 2, {}, kHour * 20);
  setting.add(1, 1, kHour * 5, kHour * 10);
  const QueueCourse course = setting.run();
  CHECK(course.jobs[1].first_start == kHour * 5);
  CHECK((course.pools[0].of(CardItem::kRecomputed) == CardTime{128} * (kHour * 5 - kMinute).ns));
  CHECK(course.jobs[0].end > course.jobs[1].end + kHour * 20);
  CHECK((course.pools[0].all() == whole(setting)));
}

// Wrong from 3 h on; stopped at 5 h, with its state in storage. What it knows of that while it waits, at 7 h,
// or once it runs again, at 17 h, takes it back to the beginning, the only state from before.
TEST_CASE("a job that is stopped for another keeps its wrong results until they are known") {
  for (const int known : {7, 17}) {
    INFO("known at " << known << " h");
    QueueSetting setting;
    setting.cluster.faults.push_back({.name = "silent", .effect = FailureEffect::kSilent});
    setting.cluster.detection.silent.mean = kHour * (known - 3);
    setting.cluster.trace = {{.time = kHour * 3, .node = 0, .kind = 1}};
    setting.add(0, 2, {}, kHour * 20);
    setting.add(1, 1, kHour * 5, kHour * 10);
    const QueueCourse course = setting.run();
    REQUIRE(course.jobs[0].preempted == 1);
    const CardTime before = CardTime{128} * (kHour * 5 - kMinute).ns;
    const CardTime recomputed = course.pools[0].of(CardItem::kRecomputed);
    CHECK((known == 7 ? recomputed == before : recomputed > before));
    CHECK((course.pools[0].all() == whole(setting)));
  }
}

TEST_CASE("a short job passes a large one that waits and a long one does not") {
  QueueSetting setting;
  setting.plan.queues = {{.name = "only", .quota = 1}};
  setting.plan.shapes[1].queue = 0;
  setting.add(0, 1, {}, kHour * 10);           // half of the cards
  setting.add(0, 2, kMinute, kHour * 5);       // all of them: it waits
  setting.add(0, 0, kMinute * 2, kHour * 20);  // would delay it
  setting.add(0, 0, kMinute * 3, kHour * 4);   // would not
  const QueueCourse easy = setting.run();
  CHECK(easy.jobs[3].first_start == kMinute * 3);
  CHECK(easy.jobs[1].first_start == kHour * 10 + kMinute);
  CHECK(easy.jobs[2].first_start >= kHour * 15);
  setting.plan.scheduler.backfill = BackfillRule::kNone;
  CHECK(setting.run().jobs[3].first_start > kHour * 10);
}

// All borrow what a third queue leaves idle, every hour one for ten of a better priority: they too have
// waited for too long before long.
TEST_CASE("nobody waits for more than the patience and those who came before, whatever the priorities") {
  QueueSetting setting;
  setting.plan.queues = {{.name = "low", .quota = 0.25},
                         {.name = "high", .quota = 0.25, .priority = 5},
                         {.name = "idle", .quota = 0.5}};
  setting.plan.scheduler.patience = kHour * 24;
  setting.add(1, 2, {}, kHour * 10);
  setting.add(0, 2, kMinute, kHour);
  for (int i = 1; i < 40; ++i) setting.add(1, 2, kHour * i, kHour * 10);
  const QueueCourse course = setting.run();
  REQUIRE(course.jobs[1].first_start > kHour * 24);
  CHECK(course.jobs[1].first_start < kHour * 24 + kMinute * 10 + kHour * 10);
}

TEST_CASE("every nanosecond of every card is in one item whatever happens") {
  for (const int faults : {0, 1, 20}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      INFO(faults << " " << seed);
      const QueueSetting setting = busy(static_cast<std::uint64_t>(faults));
      const QueueCourse course = setting.run(seed);
      for (std::size_t p = 0; p < 2; ++p) CHECK((course.pools[p].all() == whole(setting, p)));
      CardTime held = 0, of_jobs = 0;
      for (const CardAccounts& pool : course.pools) held += pool.held();
      for (const QueueJobCourse& job : course.jobs) of_jobs += job.cards;
      CHECK((held == of_jobs));
      CardTime asked = 0;
      for (const CardTime of_hour : course.asked_of_services) asked += of_hour;
      CHECK((faults == 0 ? asked == course.wanted_replicas : asked >= course.wanted_replicas));
    }
  }
}

TEST_CASE("the same seeds give the same course") {
  const QueueSetting setting = busy(5);
  const QueueCourse first = setting.run(4), again = setting.run(4);
  CHECK(first.events == again.events);
  CHECK((first.pools[0].of(CardItem::kUseful) == again.pools[0].of(CardItem::kUseful)));
  CHECK(first.energy_j == again.energy_j);
}

TEST_CASE("no cards are given beyond a static quota under any load") {
  QueueSetting setting = busy(5);
  setting.plan.scheduler.partition = PartitionRule::kStatic;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) CHECK(setting.run(seed).beyond_quota == 0);
}

// Spans of a node's cards must not overlap; here by the sum over all jobs at any time.
TEST_CASE("jobs never hold more cards together than a pool has") {
  const QueueSetting setting = busy(5);
  std::vector<std::pair<Time, std::int64_t>> changes;
  setting.run(3, {.span = [&](const CardSpan& span) {
                if (span.pool != 0) return;
                changes.emplace_back(span.begin, span.cards);
                changes.emplace_back(span.end, -span.cards);
              }});
  std::sort(changes.begin(), changes.end());
  std::int64_t held = 0;
  for (const auto& [time, cards] : changes) {
    held += cards;
    CHECK(held <= 128);
  }
  CHECK(held == 0);
}

TEST_CASE("a cap lowers clocks so far that the power is kept and work takes longer") {
  QueueSetting setting;
  setting.plan.pools[0].node_power = {10'000};
  setting.plan.pools[0].overhead_power = {2'000};
  setting.cluster.power = {.busy = 1, .idle = 0.25, .pue = 1};
  setting.add(0, 2, {}, kHour * 10);
  const QueueCourse free = setting.run();
  // 16 nodes: 64 kW base (2 kW and a quarter of 8 kW each), 96 kW more while all compute.
  CHECK(free.peak_w == Approx(160'000));
  // A cap at 64 + 96 x 0.5^3 = 76 kW halves the clock.
  setting.plan.caps = {{.from = {}, .until = kForever, .watts = {76'000}}};
  const QueueCourse capped = setting.run();
  CHECK(capped.peak_w == Approx(76'000));
  CHECK(capped.over_cap_s == 0);
  CHECK((capped.jobs[0].end - kMinute).seconds() == Approx(2 * (free.jobs[0].end - kMinute).seconds()));
}

TEST_CASE("a broken node is replaced by a spare and costs detection and the way back") {
  QueueSetting setting;
  setting.plan.pools[0].spares = 1;
  setting.cluster.detection.crash.mean = kMinute;
  setting.cluster.recovery.isolate.mean = kMinute * 2;
  setting.cluster.checkpoint.interval = kHour;
  setting.add(0, 1, {}, kHour * 10);
  setting.cluster.trace = {{.time = kHour * 2 + kMinute * 30, .node = 0, .kind = 0}};
  const QueueCourse course = setting.run();
  CHECK(course.faults[0] == 1);
  CHECK(course.jobs[0].interrupted == 1);
  // 7 of its 8 nodes stand still from the fault for a minute of detection and two of isolation.
  CHECK((course.pools[0].of(CardItem::kFault) == CardTime{56} * (kMinute * 3).ns));
  // Saved after an hour of work each, for 10 s: at 2 h 30 min it has computed for 2 h 29 min less 20 s since
  // minute 1, and the second checkpoint was of two hours.
  CHECK(
      (course.pools[0].of(CardItem::kRecomputed) == CardTime{64} * (kMinute * 28 + Time{40'000'000'000}).ns));
}

// The second node breaks with the first, or while the job starts on another in its place.
TEST_CASE("copies in peers' memory survive one node of a queued job and not two before it runs again") {
  const auto recomputed = [](int at_once, bool second) {
    QueueSetting setting;
    setting.plan.pools[0].spares = 2;
    setting.cluster.detection.crash.mean = kMinute;
    setting.cluster.checkpoint.policy = CheckpointPolicy::kMemory;
    setting.cluster.checkpoint.interval = kMinute * 10;
    setting.cluster.checkpoint.storage = {100e9 / 900};
    setting.cluster.faults[0].nodes = at_once;
    setting.add(0, 1, {}, kHour * 10);
    setting.cluster.trace = {{.time = kMinute * 105, .node = 0, .kind = 0}};
    if (second) setting.cluster.trace.push_back({.time = kMinute * 106 + kMinute, .node = 1, .kind = 0});
    return setting.run().pools[0].of(CardItem::kRecomputed);
  };
  CHECK((recomputed(1, false) < recomputed(2, false)));
  CHECK((recomputed(1, true) == recomputed(2, false)));
}

// Wrong from 2 h 30 min on, known at 7 h 30 min; the node is gone at 4 h 30 min, what it made is not.
TEST_CASE("a node that breaks takes the wrong results that it made from no queued job") {
  QueueSetting setting;
  setting.plan.pools[0].spares = 1;
  setting.cluster.checkpoint.interval = kHour;
  setting.cluster.detection.silent.mean = kHour * 5;
  setting.cluster.faults.push_back({.name = "silent", .effect = FailureEffect::kSilent});
  setting.add(0, 1, {}, kHour * 10);
  setting.cluster.trace = {{.time = kHour * 2 + kMinute * 30, .node = 0, .kind = 1},
                           {.time = kHour * 4 + kMinute * 30, .node = 0, .kind = 0}};
  const QueueCourse course = setting.run();
  CHECK(course.jobs[0].done);
  CHECK((course.pools[0].of(CardItem::kRecomputed) > CardTime{64} * (kHour * 5).ns));
  CHECK((course.pools[0].of(CardItem::kUseful) == CardTime{64} * (kHour * 10).ns));
}

// Whatever breaks, at most an interval between checkpoints and what saving takes is computed again; of
// results that are wrong, what came after them too.
TEST_CASE(
    "a fault of every kind at its stated time is in the course and costs no more than checkpoints promise") {
  struct Kind {
    const char* name;
    FailureEffect effect;
    int nodes;
    Time lost;  // at most, beside interval and saving
  };
  const Time unnoticed = kHour;
  for (const Kind& kind :
       {Kind{"crash", FailureEffect::kCrash, 1, {}}, Kind{"hang", FailureEffect::kHang, 1, {}},
        Kind{"software", FailureEffect::kCrash, 0, {}}, Kind{"switch", FailureEffect::kCrash, 4, {}},
        Kind{"straggler", FailureEffect::kSlow, 1, {}},
        Kind{"silent corruption", FailureEffect::kSilent, 1, unnoticed}}) {
    INFO(kind.name);
    QueueSetting setting;
    setting.cluster.checkpoint.interval = kHour;
    setting.cluster.detection.slow.mean = setting.cluster.detection.silent.mean = unnoticed;
    setting.cluster.faults = {
        {.name = kind.name, .effect = kind.effect, .nodes = kind.nodes, .repair = {kHour, 0}}};
    setting.cluster.faults[0].slow_factor = 2;
    setting.add(0, 1, {}, kHour * 10);
    const Time when = kHour * 5 + kMinute * 30;
    setting.cluster.trace = {{.time = when, .node = 0, .kind = 0}};
    bool struck = false, detected = false, resumed = false;
    const QueueCourse course = setting.run(
        1, {.hear = [&](const QueueEvent& event) {
          struck =
              struck || (event.what == QueueEvent::What::kFault && event.time == when && event.kind == 0);
          detected = detected || (event.what == QueueEvent::What::kDetected && event.time >= when);
          resumed = resumed || (event.what == QueueEvent::What::kResumed && event.time > when);
        }});
    CHECK(struck);
    CHECK(detected);
    CHECK(resumed);
    CHECK(course.jobs[0].done);
    CHECK(course.jobs[0].interrupted == 1);
    const Time most = kHour + Time{10'000'000'000} + kind.lost;
    CHECK((course.pools[0].of(CardItem::kRecomputed) <= CardTime{64} * most.ns));
    CHECK((course.pools[0].of(CardItem::kUseful) == CardTime{64} * (kHour * 10).ns));
    if (kind.effect == FailureEffect::kSlow) CHECK((course.pools[0].of(CardItem::kRecomputed) == 0));
  }
}

}  // namespace
}  // namespace moebius

// Busy half of the time in a common queue, which halves the rate: half the time at 1, half at 1/2: 3/4.
// Of a strictly better priority nothing is left while it is busy, however long it goes on.
TEST_CASE("a neighbour takes of a network what it is busy for") {
  using moebius::network_left;
  CHECK(network_left(0.5, 2) == Approx(0.75));
  CHECK(network_left(0.3, 1) == 1);
  CHECK(network_left(0.3, 1e12) == Approx(0.7));
}
