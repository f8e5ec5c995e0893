#include <catch2/catch.hpp>

#include "workloads/schedule/metrics.h"

using namespace moebius;

namespace {

CountedOp op_of(OpKind kind, Phase phase = Phase::kForward, const ClassWork& work = {}) {
  return counted({.kind = kind, .phase = phase}, work);
}

// Whole seconds, so that sums are exact.
Span span_of(std::int32_t rank_class, std::int64_t start, std::int64_t end, Lane lane = Lane::kCompute) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return {.rank_class = rank_class, .lane = lane, .start = {start * kSecond}, .end = {end * kSecond}};
}

double at(const std::array<double, kNumOpKinds>& seconds, OpKind kind) {
  return seconds[static_cast<int>(kind)];
}

constexpr Time kTen{10'000'000'000};

}  // namespace

TEST_CASE("compute, exposed communication and idle time add up to the makespan") {
  MetricsAccumulator metrics({1});
  metrics.add(span_of(0, 0, 4), op_of(OpKind::kGemm, Phase::kForward, {100, 0}));
  metrics.add(span_of(0, 3, 6, Lane::kExpertComm), op_of(OpKind::kDispatch, Phase::kForward, {0, 5}));
  metrics.add(span_of(0, 6, 8), op_of(OpKind::kAttention, Phase::kForward, {50, 0}));
  const Metrics m = metrics.finish(kTen);
  REQUIRE(at(m.breakdown.compute, OpKind::kGemm) == 4);
  REQUIRE(at(m.breakdown.compute, OpKind::kAttention) == 2);
  REQUIRE(at(m.breakdown.communication, OpKind::kDispatch) == 3);
  REQUIRE(at(m.breakdown.exposed, OpKind::kDispatch) == 2);
  REQUIRE(m.breakdown.idle == 10 - 6 - 2);
  REQUIRE(m.makespan == kTen);
  REQUIRE(m.flops == 150);
  REQUIRE(at(m.flops_by_kind, OpKind::kGemm) == 100);
  REQUIRE(at(m.flops_by_kind, OpKind::kAttention) == 50);
  REQUIRE(m.sent_bytes == 5);
  REQUIRE(m.spans == 3);
}

TEST_CASE("what a receive waits for is idle time, its transfer is communication") {
  MetricsAccumulator metrics({1});
  Span recv = span_of(0, 0, 7, Lane::kRecvForward);
  recv.work_start = {6'000'000'000};
  metrics.add(recv, op_of(OpKind::kRecv));
  metrics.add(span_of(0, 7, 10), op_of(OpKind::kGemm));
  const Metrics m = metrics.finish(kTen);
  REQUIRE(at(m.breakdown.communication, OpKind::kRecv) == 1);
  REQUIRE(at(m.breakdown.exposed, OpKind::kRecv) == 1);
  REQUIRE(at(m.breakdown.waiting, OpKind::kRecv) == 6);
  REQUIRE(m.breakdown.idle == 6);
}

TEST_CASE("a class counts with its ranks") {
  // Three ranks compute for 4 s, one for 8 s: 5 s on average.
  MetricsAccumulator metrics({3, 1});
  metrics.add(span_of(0, 0, 4), op_of(OpKind::kGemm));
  metrics.add(span_of(1, 0, 8), op_of(OpKind::kGemm));
  const Metrics m = metrics.finish(kTen);
  REQUIRE(at(m.breakdown.compute, OpKind::kGemm) == Approx(5));
  REQUIRE(m.breakdown.idle == Approx(5));
  REQUIRE(at(m.by_class[1].compute, OpKind::kGemm) == 8);
  REQUIRE(m.by_class[0].idle == 6);
}

TEST_CASE("optimizer time is compute and exposed communication of its phase") {
  MetricsAccumulator metrics({1});
  metrics.add(span_of(0, 0, 3), op_of(OpKind::kAdam, Phase::kOptimizer));
  metrics.add(span_of(0, 2, 7, Lane::kDataComm), op_of(OpKind::kAllGather, Phase::kOptimizer));
  metrics.add(span_of(0, 7, 9), op_of(OpKind::kGemm));
  const Metrics m = metrics.finish(kTen);
  REQUIRE(m.breakdown.optimizer == 3 + 4);
  REQUIRE(m.breakdown.compute_by_phase[static_cast<int>(Phase::kOptimizer)] == 3);
}

TEST_CASE(
    "a class of unequal members computes as long as its average member, which then waits for the slowest") {
  // The slowest member computes 0..4 s and 4..8 s and meets the others at once. The average member takes 3 s
  // and 3 s: it is done at 6 s and waits 2 s.
  MetricsAccumulator metrics({2});
  Span first = span_of(0, 0, 4), second = span_of(0, 4, 8), meeting = span_of(0, 6, 10, Lane::kExpertComm);
  first.mean_end = {3'000'000'000};
  second.mean_end = {7'000'000'000};
  meeting.work_start = {8'000'000'000};
  metrics.add(first, op_of(OpKind::kGroupedGemm));
  metrics.add(second, op_of(OpKind::kActivation));
  metrics.add(meeting, op_of(OpKind::kCombine));
  const Metrics m = metrics.finish(kTen);
  REQUIRE(at(m.breakdown.compute, OpKind::kGroupedGemm) == 3);
  REQUIRE(at(m.breakdown.compute, OpKind::kActivation) == 3);
  REQUIRE(at(m.breakdown.waiting, OpKind::kCombine) == 2);
  REQUIRE(at(m.breakdown.exposed, OpKind::kCombine) == 2);
  REQUIRE(m.breakdown.idle == 2);
}

TEST_CASE("an exchange on the lane that computes is waited for as one on a lane of its own") {
  // The meeting follows at once: the lane is the slowest member's until 8 s, the average one is there at 6 s.
  MetricsAccumulator metrics({2});
  Span first = span_of(0, 0, 4), second = span_of(0, 4, 8), meeting = span_of(0, 8, 10);
  first.mean_end = {3'000'000'000};
  second.mean_end = {7'000'000'000};
  metrics.add(first, op_of(OpKind::kGroupedGemm));
  metrics.add(second, op_of(OpKind::kActivation));
  metrics.add(meeting, op_of(OpKind::kCombine));
  const Metrics m = metrics.finish(kTen);
  REQUIRE(at(m.breakdown.waiting, OpKind::kCombine) == 2);
  REQUIRE(at(m.breakdown.exposed, OpKind::kCombine) == 2);
  REQUIRE(m.breakdown.idle == 2);
}

TEST_CASE("after a pause all members start together") {
  // 0..4 s, on average 3 s; then 5..6 s: the average member starts at 5 s, too, and is idle from 3 to 5 s.
  MetricsAccumulator metrics({2});
  Span first = span_of(0, 0, 4);
  first.mean_end = {3'000'000'000};
  metrics.add(first, op_of(OpKind::kGroupedGemm));
  metrics.add(span_of(0, 5, 6), op_of(OpKind::kGemm));
  metrics.add(span_of(0, 6, 10), op_of(OpKind::kAttention));
  const Metrics m = metrics.finish(kTen);
  REQUIRE(at(m.breakdown.compute, OpKind::kGemm) == 1);
  REQUIRE(m.breakdown.idle == 2);
}

TEST_CASE("trust is weighted by busy time and ranks") {
  MetricsAccumulator metrics({1, 3});
  Span measured = span_of(0, 0, 6), analytic = span_of(1, 0, 2);
  measured.origin = Origin::kMeasured;
  measured.error = 0.05f;
  analytic.origin = Origin::kAnalytic;
  analytic.error = 0.25f;
  metrics.add(measured, op_of(OpKind::kGemm));
  metrics.add(analytic, op_of(OpKind::kGemm));
  const Metrics m = metrics.finish(kTen);
  REQUIRE(m.seconds_by_origin[static_cast<int>(Origin::kMeasured)] == 6);
  REQUIRE(m.seconds_by_origin[static_cast<int>(Origin::kAnalytic)] == 6);  // 3 ranks x 2 s
  REQUIRE(m.mean_error == Approx(0.15));                                   // (6 * 0.05 + 6 * 0.25) / 12
}

TEST_CASE("expected errors are kept by class, origin and kind, in seconds of one rank") {
  MetricsAccumulator metrics({1, 3});
  Span first = span_of(1, 0, 6), second = span_of(1, 6, 8), sent = span_of(1, 8, 9, Lane::kExpertComm);
  first.origin = second.origin = Origin::kInterpolated;
  first.error = 0.25f;
  second.error = 0.5f;
  metrics.add(first, op_of(OpKind::kGemm));
  metrics.add(second, op_of(OpKind::kGemm));
  metrics.add(sent, op_of(OpKind::kDispatch));
  const Metrics m = metrics.finish(kTen);
  REQUIRE(m.errors_by_class.size() == 2);
  double all = 0;
  for (const auto& origin : m.errors_by_class[1])
    for (const double seconds : origin) all += seconds;
  REQUIRE(all == 2.5);  // 6 * 0.25 + 2 * 0.5
  REQUIRE(m.errors_by_class[1][static_cast<int>(Origin::kInterpolated)][static_cast<int>(OpKind::kGemm)] ==
          all);
}

TEST_CASE("a run without spans is idle") {
  MetricsAccumulator metrics({4});
  const Metrics m = metrics.finish(kTen);
  REQUIRE(m.breakdown.idle == Approx(10));
  REQUIRE(m.mean_error == 0);
}
