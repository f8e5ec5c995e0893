#include "hw/error.h"

#include "tests/catch.h"

#include "small_schedule.h"
#include "workloads/schedule/replay.h"
#include "workloads/training/layers/builder.h"

using namespace moebius;

namespace {

constexpr std::uint32_t kX = 1, kY = 2;

Tensor kept(std::uint32_t key) {
  return {.scope = Scope::kRank, .dtype = DType::kFp32, .key = key, .rows = 2, .columns = 1};
}

// Ranks 0 and 1 as one group of a role, a class each.
Layout pair_of(GroupRole role) {
  Layout layout = small_layout(2, false);
  for (RankClass& place : layout.classes)
    place.groups[static_cast<int>(role)] = place.group(GroupRole::kExpert);
  return layout;
}

// One op that brings or takes a message.
FragmentPtr message(OpKind kind, GroupRole role) {
  FragmentBuilder b("message", Phase::kForward);
  Op op{.kind = kind, .dtype = DType::kFp32, .lane = Lane::kSendForward, .group = role, .match = 3};
  op.payload = {8};
  if (kind == OpKind::kSend) {
    b.emit(op, {b.add(kept(kX))}, {});
  } else {
    b.emit(op, {}, {b.add(kept(kY))});
  }
  return b.freeze_it();
}

// A replay with the spans that it left.
class Replayed {
 public:
  Replayed(const Layout& layout, OpDurations durations)
      : layout_(layout), recorder_(layout_, RecorderOptions{}) {
    executor_ = make_replay(layout_, recorder_, std::move(durations));
  }

  void submit(int rank, const FragmentPtr& fragment, std::vector<std::int32_t> after = {}) {
    const Submission submission{
        .fragment = fragment, .sequence = sequence_++, .rank_class = rank, .after = std::move(after)};
    recorder_.submitted(submission);
    executor_->submit(submission);
  }
  Time finish() { return executor_->finish(); }
  Executor& executor() { return *executor_; }

  Span span(std::int32_t sequence, std::int32_t op) {
    for (const Span& span : recorder_.timeline().spans)
      if (span.sequence == sequence && span.op == op) return span;
    throw std::runtime_error("no such span");
  }

 private:
  Layout layout_;
  Recorder recorder_;
  std::unique_ptr<Executor> executor_;
  std::int32_t sequence_ = 0;
};

OpDurations durations(const std::vector<std::vector<std::int64_t>>& by_submission) {
  OpDurations result;
  for (std::size_t sequence = 0; sequence < by_submission.size(); ++sequence)
    for (std::size_t op = 0; op < by_submission[sequence].size(); ++op)
      result.set(static_cast<std::int32_t>(sequence), static_cast<std::int32_t>(op),
                 {by_submission[sequence][op]});
  return result;
}

}  // namespace

TEST_CASE("a replayed layer waits for its last member and takes as long as the slowest") {
  // gemm, dispatch, grouped gemm, combine. Dispatch begins at 16, when rank 1 is there, and takes max(4, 6);
  // combine begins at 22 + 20 = 42, when rank 0 is there, and takes max(3, 5).
  Replayed run(small_layout(2, false), durations({{10, 4, 20, 3}, {16, 6, 8, 5}}));
  const FragmentPtr layer = freeze(small_fragment());
  run.submit(0, layer);
  run.submit(1, layer);
  CHECK(run.finish() == Time{47});
  CHECK(run.span(0, 1).start == Time{10});
  CHECK(run.span(0, 1).work_start == Time{16});
  CHECK(run.span(0, 1).end == Time{22});
  CHECK(run.span(1, 1).end == Time{22});
  CHECK(run.span(1, 2).end == Time{30});
  CHECK(run.span(1, 3).start == Time{30});
  CHECK(run.span(1, 3).work_start == Time{42});
  CHECK(run.span(0, 3).origin == Origin::kExecuted);
}

TEST_CASE("replayed lanes run side by side where no op needs the other") {
  FragmentBuilder b("two lanes", Phase::kForward);
  const TensorId x = b.add(kept(kX)), y = b.add(kept(kY));
  b.emit({.kind = OpKind::kAdd, .shape = {.m = 2, .n = 1}}, {x, x}, {b.transient(2, 1, DType::kFp32)});
  b.emit({.kind = OpKind::kAdd, .lane = Lane::kHostCopy, .shape = {.m = 2, .n = 1}}, {y, y},
         {b.transient(2, 1, DType::kFp32)});
  Replayed run(small_layout(2, false), durations({{30, 50}}));
  run.submit(0, b.freeze_it());
  CHECK(run.finish() == Time{50});
  CHECK(run.span(0, 1).start == Time{0});
}

TEST_CASE("a replayed submission starts when those that it comes after are complete") {
  FragmentBuilder b("one op", Phase::kForward);
  const TensorId x = b.add(kept(kX));
  b.emit({.kind = OpKind::kAdd, .shape = {.m = 2, .n = 1}}, {x, x}, {b.transient(2, 1, DType::kFp32)});
  const FragmentPtr one = b.freeze_it();
  Replayed run(small_layout(2, false), durations({{30}, {5}, {7}}));
  run.submit(0, one);
  run.submit(1, one, {0});  // another rank's lane is free at once
  run.submit(1, one);       // in the order of its lane
  CHECK(run.finish() == Time{42});
  CHECK(run.span(1, 0).start == Time{30});
  CHECK(run.span(2, 0).start == Time{35});
}

TEST_CASE("a replayed message takes its sender's time and then its receiver's") {
  const Layout layout = pair_of(GroupRole::kNext);
  const FragmentPtr send = message(OpKind::kSend, GroupRole::kNext),
                    receive = message(OpKind::kRecv, GroupRole::kNext);
  Replayed waiting(layout, durations({{4}, {9}}));  // the receiver is there first
  waiting.submit(1, receive);
  waiting.submit(0, send);
  CHECK(waiting.finish() == Time{13});
  CHECK(waiting.span(1, 0).end == Time{9});
  CHECK(waiting.span(0, 0).work_start == Time{0});
  Replayed late(layout, durations({{9}, {20}, {4}}));
  late.submit(0, send);
  FragmentBuilder b("busy", Phase::kForward);
  const TensorId x = b.add(kept(kX));
  b.emit({.kind = OpKind::kAdd, .lane = Lane::kSendForward, .shape = {.m = 2, .n = 1}}, {x, x},
         {b.transient(2, 1, DType::kFp32)});
  late.submit(1, b.freeze_it());
  late.submit(1, receive);  // at 20, long after the message
  CHECK(late.finish() == Time{24});
  CHECK(late.span(0, 0).end == Time{9});
}

TEST_CASE("a replayed schedule whose members never come is a deadlock in a sentence") {
  Replayed run(small_layout(2, false), durations({{10, 4, 20, 3}}));
  run.submit(0, freeze(small_fragment()));
  CHECK_THROWS_WITH(run.finish(),
                    "deadlock at 10 ns: submission 0 (forward) of rank 0 and 0 more wait for each other");
}

TEST_CASE("an op's time is the median of its executions") {
  const OpDurations medians =
      median_of({durations({{5, 100}}), durations({{9, 1}}), durations({{6, 2}}), durations({{50, 3}})});
  // Of {5, 6, 9, 50} and {1, 2, 3, 100} the lesser of the two in the middle.
  CHECK(medians.at(0, 0) == Time{6});
  CHECK(medians.at(0, 1) == Time{2});
}
