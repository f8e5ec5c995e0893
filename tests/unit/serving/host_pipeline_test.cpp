// When the host works, and what waits for it.
#include <catch2/catch.hpp>

#include "workloads/serving/system/host_pipeline.h"

namespace moebius {

using namespace literals;

namespace {

constexpr Time kDevice = 10_ms;

// A loop of 2 ms and 10 us a sequence before the device, 20 us a token behind it.
HostCosts costs_of() {
  HostCosts costs;
  costs.per_iteration = 2_ms;
  costs.per_sequence = 10_us;
  costs.per_token = 20_us;
  return costs;
}

constexpr HostWork kWork{.sequences = 100, .changes = 3, .samples = 100, .tokens = 100};

// The time of one iteration after many.
Time steady(const HostCosts& costs, Time device) {
  HostLane lane(costs);
  Time now, before;
  for (int i = 0; i < 100; ++i) before = now, now = lane.turn(now, device, kWork).end;
  return now - before;
}

}  // namespace

TEST_CASE("a serial loop adds its time to the device's, exactly") {
  CHECK(steady(costs_of(), kDevice) == 2_ms + 1_ms + kDevice + 2_ms);
  CHECK(steady({}, kDevice) == kDevice);
}

TEST_CASE("where only changes are written the loop's time does not grow with those who run") {
  HostCosts costs = costs_of();
  costs.by_change = true;
  CHECK(steady(costs, kDevice) == 2_ms + 30_us + kDevice + 2_ms);
}

// Three milliseconds before and two behind, beside ten of the device; beside two, five are what counts.
TEST_CASE("a loop that works ahead costs nothing until it takes longer than the device") {
  HostCosts costs = costs_of();
  costs.overlapped = true;
  CHECK(steady(costs, kDevice) == kDevice);
  CHECK(steady(costs, 2_ms) == 5_ms);
  HostLane lane(costs);
  CHECK(lane.turn({}, kDevice, kWork).end == 3_ms + kDevice);  // the first one has nothing to hide behind
}

// Three milliseconds before, four behind the launch and two with the tokens: in turn with the device, which
// hides the four, or all nine beside it.
TEST_CASE("what is submitted behind a launch goes on beside the device, which waits where it is shorter") {
  HostCosts costs = costs_of();
  costs.per_submission = 4_ms;
  CHECK(costs.takes_time());
  CHECK(steady(costs, kDevice) == 3_ms + kDevice + 2_ms);
  CHECK(steady(costs, 1_ms) == 3_ms + 4_ms + 2_ms);
  costs.overlapped = true;
  CHECK(steady(costs, kDevice) == kDevice);
  CHECK(steady(costs, 9_ms) == 9_ms);
  CHECK(steady(costs, 2_ms) == 9_ms);
  CHECK(HostLane(costs).turn({}, kDevice, kWork).end == 3_ms + kDevice);
  CHECK(HostLane(costs).turn({}, 2_ms, kWork).end == 3_ms + 4_ms);
  HostLane lane(costs);
  lane.turn({}, 2_ms, kWork);
  CHECK(lane.totals().loop == 9_ms);
  CHECK(lane.totals().waits == 3_ms + 2_ms);  // until it begins, and for what is still to be submitted
}

TEST_CASE("workers of tokens delay what is shown and not the next iteration") {
  HostCosts costs = costs_of();
  costs.parallel = true;
  HostLane lane(costs);
  const HostLane::Turn first = lane.turn({}, kDevice, kWork);
  CHECK(first.end == 13_ms);
  CHECK(first.shown == 15_ms);
  costs.output_workers = 4;
  CHECK(HostLane(costs).turn({}, kDevice, kWork).shown == 13_ms + 500_us);
}

TEST_CASE("tokens that come faster than they are sent queue") {
  HostCosts costs;
  costs.parallel = true;
  costs.per_token = 200_us;
  HostLane lane(costs);
  Time now, shown;
  for (int i = 0; i < 10; ++i) {
    const HostLane::Turn turn = lane.turn(now, kDevice, kWork);
    now = turn.end;
    shown = turn.shown;
  }
  CHECK(now == kDevice * 10);
  CHECK(shown == kDevice + 20_ms * 10);
}

TEST_CASE("a host that chooses tokens keeps the device waiting whatever else it hides") {
  HostCosts costs;
  costs.overlapped = costs.parallel = true;
  costs.per_sample = 30_us;
  CHECK(steady(costs, kDevice) == kDevice + 3_ms);
}

TEST_CASE("a loop takes requests in before its next iteration") {
  HostCosts costs = costs_of();
  HostLane lane(costs);
  lane.take_in(7_ms);
  const Time end = lane.turn({}, kDevice, kWork).end;
  CHECK(end == 7_ms + 15_ms);
  CHECK(lane.turn(end, kDevice, kWork).end == end + 15_ms);
}

// Three requests of 5 ms at once before two workers: the third waits for the first to be done.
TEST_CASE("workers take one request after the other, in order") {
  HostWorkers workers(2);
  CHECK(workers.serve({}, 5_ms) == 5_ms);
  CHECK(workers.serve({}, 6_ms) == 6_ms);
  CHECK(workers.serve({}, 5_ms) == 10_ms);
  CHECK(workers.serve(20_ms, 5_ms) == 25_ms);
  CHECK(workers.busy() == 21_ms);
}

// Two milliseconds of the loop for the tokens that are there and three for what has only just come: nothing
// of them is hidden, though the device ends at the same moment.
TEST_CASE("a loop cannot work ahead for what was not there") {
  HostCosts costs = costs_of();
  costs.overlapped = true;
  HostLane lane(costs);
  const Time end = lane.turn({}, kDevice, kWork).end;
  HostWork fresh = kWork;
  fresh.anew = true;
  CHECK(lane.turn(end, kDevice, fresh).end == end + 2_ms + 3_ms + kDevice);
}

// Two iterations that are decided at one moment: the loop prepares the first, then the other.
TEST_CASE("lanes of one engine have its loop one after the other") {
  for (const bool overlapped : {false, true}) {
    HostCosts costs;
    costs.per_iteration = Time{10};
    costs.overlapped = overlapped;
    HostLane one(costs), other(costs);
    other.share_loop(one);
    const HostWork work{.sequences = 1, .anew = true};
    CHECK(one.begin({}, work) == Time{10});
    CHECK(other.begin({}, work) == Time{20});
  }
}

// A loop of 10 ms, before the device or behind the launch, for each of two lanes whose batches take the
// device 2 ms: a lane has one every 20 ms, and none begins before the one that it follows has ended.
TEST_CASE("a lane waits for the loop that it shares as the first one does") {
  const bool behind = GENERATE(false, true);
  HostCosts costs;
  (behind ? costs.per_submission : costs.per_iteration) = 10_ms;
  costs.overlapped = true;
  HostLane one(costs), other(costs);
  other.share_loop(one);
  Time ends[2], before[2];
  for (int i = 0; i < 20; ++i) {
    for (int lane = 0; lane < 2; ++lane) {
      HostLane& of = lane == 0 ? one : other;
      before[lane] = ends[lane];
      const Time begun = of.begin(ends[lane], {.sequences = 1, .anew = i == 0});
      CHECK(begun >= ends[lane]);
      ends[lane] = of.end(2_ms, {.sequences = 1}).end;
    }
  }
  for (int lane = 0; lane < 2; ++lane) CHECK(ends[lane] - before[lane] == 20_ms);
  CHECK(other.totals().waits > Time{});
}

}  // namespace moebius
