#include <catch2/catch.hpp>

#include <numeric>
#include <random>

#include "workloads/schedule/exposure.h"

using namespace moebius;

namespace {

std::int64_t at(const std::array<std::int64_t, kNumOpKinds>& sums, OpKind kind) {
  return sums[static_cast<int>(kind)];
}

std::int64_t sum(const std::array<std::int64_t, kNumOpKinds>& sums) {
  return std::accumulate(sums.begin(), sums.end(), std::int64_t{0});
}

// A transfer that waits from `start` and moves from `work` to `end`.
ExposedCommunication transfer(OpKind kind, std::int64_t start, std::int64_t work, std::int64_t end,
                              Phase phase = Phase::kForward) {
  return {.waiting = {start, work}, .transfer = {work, end}, .kind = kind, .phase = phase};
}

}  // namespace

TEST_CASE("a transfer under compute is hidden, the rest of it exposed") {
  Exposure e;
  e.compute({0, 10});
  e.communicate(transfer(OpKind::kDispatch, 5, 5, 18));
  e.compute({15, 20});
  e.finish(25);
  REQUIRE(at(e.transfer(), OpKind::kDispatch) == 5);  // 10..15
  REQUIRE(e.computed() == 15);
  REQUIRE(sum(e.waiting()) == 0);
}

TEST_CASE("compute that is reported after a transfer still hides it") {
  Exposure e;
  e.communicate(transfer(OpKind::kDispatch, 2, 2, 6));
  e.compute({0, 10});
  e.finish(10);
  REQUIRE(sum(e.transfer()) == 0);
}

TEST_CASE("transfers that overlap are counted once, for the one that started first") {
  Exposure e;
  e.communicate(transfer(OpKind::kDispatch, 0, 0, 6));
  e.communicate(transfer(OpKind::kAllReduce, 4, 4, 10));
  e.compute({12, 20});
  e.finish(20);
  REQUIRE(at(e.transfer(), OpKind::kDispatch) == 6);
  REQUIRE(at(e.transfer(), OpKind::kAllReduce) == 4);  // 6..10
}

TEST_CASE("a transfer that ends after compute went on gets what others leave, on both sides of them") {
  Exposure e;
  e.communicate(transfer(OpKind::kDispatch, 4, 4, 6));
  e.compute({10, 12});
  e.communicate(transfer(OpKind::kAllReduce, 0, 0, 14));
  e.compute({16, 20});
  e.finish(20);
  REQUIRE(at(e.transfer(), OpKind::kDispatch) == 2);
  REQUIRE(at(e.transfer(), OpKind::kAllReduce) == 4 + 4 + 2);  // 0..4, 6..10, 12..14
}

TEST_CASE("waiting for peers is not exposed communication") {
  Exposure e;
  e.compute({0, 10});
  e.communicate(transfer(OpKind::kDispatch, 10, 14, 17));
  e.compute({17, 20});
  e.finish(20);
  REQUIRE(at(e.waiting(), OpKind::kDispatch) == 4);
  REQUIRE(at(e.transfer(), OpKind::kDispatch) == 3);
}

TEST_CASE("waiting under compute or beside a transfer is hidden") {
  Exposure e;
  e.compute({0, 4});
  e.communicate(transfer(OpKind::kAllReduce, 4, 4, 8));
  e.communicate(transfer(OpKind::kDispatch, 2, 9, 10));  // waits 2..9: compute till 4, the all-reduce till 8
  e.compute({10, 12});
  e.finish(12);
  REQUIRE(at(e.waiting(), OpKind::kDispatch) == 1);
  REQUIRE(at(e.transfer(), OpKind::kAllReduce) == 4);
  REQUIRE(at(e.transfer(), OpKind::kDispatch) == 1);
}

TEST_CASE("a transfer that becomes known later takes its time back from those who waited") {
  Exposure e;
  e.communicate(transfer(OpKind::kDispatch, 0, 5, 6));
  e.compute({6, 8});
  REQUIRE(at(e.waiting(), OpKind::kDispatch) == 5);
  e.communicate(transfer(OpKind::kAllReduce, 2, 2, 9));
  e.compute({9, 10});
  e.finish(10);
  REQUIRE(at(e.waiting(), OpKind::kDispatch) == 2);        // 0..2
  REQUIRE(at(e.transfer(), OpKind::kAllReduce) == 3 + 1);  // 2..5, 8..9
}

TEST_CASE("a receive that was posted early does not take the waiting of what stands beside it") {
  Exposure e;
  e.communicate(transfer(OpKind::kRecv, 0, 9, 10));
  e.communicate(transfer(OpKind::kDispatch, 4, 8, 8));
  e.compute({10, 12});
  e.finish(12);
  REQUIRE(at(e.waiting(), OpKind::kDispatch) == 4);
  REQUIRE(at(e.waiting(), OpKind::kRecv) == 4 + 1);  // 0..4, 8..9
}

TEST_CASE("compute on two lanes counts a moment once") {
  Exposure e;
  e.compute({5, 10});
  e.compute({0, 20});
  e.compute({12, 16});
  e.finish(30);
  REQUIRE(e.computed() == 20);
}

TEST_CASE("exposed time of a phase is that of its ops") {
  Exposure e;
  e.communicate(transfer(OpKind::kAllGather, 0, 0, 4, Phase::kOptimizer));
  e.communicate(transfer(OpKind::kAllReduce, 4, 4, 7, Phase::kGradients));
  e.finish(7);
  REQUIRE(e.transfer_of_phase(Phase::kOptimizer) == 4);
  REQUIRE(e.transfer_of_phase(Phase::kGradients) == 3);
}

TEST_CASE("compute, exposed transfers and waiting are what a clock that ticks through the run counts") {
  // Random lanes: one of compute, three of communication. Each nanosecond belongs to compute if any runs,
  // else to transfer if any runs, else to waiting.
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    constexpr int kEnd = 400;
    struct Event {
      std::int64_t end;
      bool compute;
      ExposedCommunication c;
    };
    std::vector<Event> events;
    for (int lane = 0; lane < 4; ++lane) {
      for (std::int64_t t = below(20); t < kEnd - 60;) {
        const std::int64_t work = t + (lane == 0 ? 0 : below(20)), end = work + 1 + below(20);
        const OpKind kind = lane == 1 ? OpKind::kDispatch : lane == 2 ? OpKind::kAllReduce : OpKind::kRecv;
        events.push_back({end, lane == 0, transfer(kind, t, work, end)});
        t = end + below(25);
      }
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.end < b.end; });
    std::array<int, kEnd> state{};  // 3 compute, 2 transfer, 1 waiting
    const auto mark = [&](Interval interval, int what) {
      for (std::int64_t t = interval.start; t < interval.end; ++t) state[t] = std::max(state[t], what);
    };
    Exposure e;
    for (const Event& event : events) {
      if (event.compute) {
        e.compute(event.c.transfer);
        mark(event.c.transfer, 3);
      } else {
        e.communicate(event.c);
        mark(event.c.transfer, 2);
        mark(event.c.waiting, 1);
      }
    }
    e.finish(kEnd);
    REQUIRE(e.computed() == std::count(state.begin(), state.end(), 3));
    REQUIRE(sum(e.transfer()) == std::count(state.begin(), state.end(), 2));
    REQUIRE(sum(e.waiting()) == std::count(state.begin(), state.end(), 1));
  }
}
