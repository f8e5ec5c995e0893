// The executor's own promises: collectives, order, errors, deadlocks, times, memory.
#include <functional>

#include <catch2/catch.hpp>

#include "tests/gpu/op_case.h"

namespace moebius {
namespace {

using Numbers = std::vector<float>;
constexpr std::uint32_t kIn = 1, kOut = 2;

Numbers brought(int rank, int count) {
  Numbers x;
  for (int i = 0; i < count; ++i) x.push_back(static_cast<float>(100 * (rank + 1) + i));
  return x;
}

// Ranks of one group, and fragments submitted to them by hand.
class ByHand {
 public:
  ByHand(int ranks, GroupRole role)
      : layout_(one_group(ranks, role)),
        recorder_(layout_, RecorderOptions{}),
        executor_(make_cuda_executor(layout_, recorder_, {.poison = true})) {}

  std::int32_t submit(int rank, const FragmentPtr& fragment, std::vector<std::int32_t> after = {}) {
    const Submission submission{
        .fragment = fragment, .sequence = sequence_, .rank_class = rank, .after = std::move(after)};
    recorder_.submitted(submission);
    executor_->submit(submission);
    return sequence_++;
  }
  void run_everywhere(const FragmentPtr& fragment) {
    for (int rank = 0; rank < layout_.ranks; ++rank) submit(rank, fragment);
    executor_->finish();
  }
  CudaExecutor& executor() { return *executor_; }
  Recorder& recorder() { return recorder_; }

 private:
  Layout layout_;
  Recorder recorder_;
  std::unique_ptr<CudaExecutor> executor_;
  std::int32_t sequence_ = 0;
};

// One collective from a tensor of rows_in x 2 to one of rows_out x 2, on the host and on the device.
struct Collected {
  std::vector<Numbers> out;
  std::vector<double> sent;
  bool operator==(const Collected&) const = default;
};

template <class SomeExecutor>
Collected look_at(SomeExecutor& executor, int ranks, const std::vector<std::uint32_t>& keys) {
  Collected all;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const std::uint32_t key : keys) all.out.push_back(executor.tensor(rank, key));
  }
  for (const Transfer& transfer : executor.transfers()) all.sent.push_back(transfer.sent_bytes);
  return all;
}

void compare_collective(const FragmentPtr& fragment, const std::vector<int>& counts,
                        const std::vector<std::uint32_t>& keys) {
  constexpr int kRanks = 3;
  HandMade host(one_group(kRanks, GroupRole::kData));
  ByHand device(kRanks, GroupRole::kData);
  for (int rank = 0; rank < kRanks; ++rank) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      host.executor().set_parameter(rank, kIn + i, brought(rank, counts[i]));
      device.executor().set_parameter(rank, kIn + i, brought(rank, counts[i]));
    }
  }
  host.run_everywhere(fragment);
  device.run_everywhere(fragment);
  CHECK(look_at(device.executor(), kRanks, keys) == look_at(host.executor(), kRanks, keys));
}

FragmentPtr collective(OpKind kind, int rows_in, int rows_out) {
  FragmentBuilder builder("collective", Phase::kForward);
  const TensorId in = builder.add(kept(kIn, rows_in, 2)), out = builder.add(kept(kOut, rows_out, 2));
  builder.emit(meeting(kind, GroupRole::kData, 7), {in}, {out});
  return builder.freeze_it();
}

FragmentPtr in_place(OpKind kind) {
  FragmentBuilder builder("in place", Phase::kGradients);
  const TensorId a = builder.add(kept(kIn, 5, 1)), b = builder.add(kept(kOut, 1, 2));
  builder.emit(meeting(kind, GroupRole::kData, 7), {a, b}, {a, b});
  return builder.freeze_it();
}

FragmentPtr one_add() {
  FragmentBuilder builder("add", Phase::kForward);
  const TensorId x = builder.add(kept(kIn, 4, 8)), y = builder.add(kept(kOut, 4, 8));
  builder.emit({.kind = OpKind::kAdd, .dtype = DType::kFp32, .shape = {.m = 4, .n = 8}}, {x, x}, {y});
  return builder.freeze_it();
}

}  // namespace

TEST_CASE("collectives leave what the host's leave, and send as many bytes") {
  NEEDS_DEVICE();
  compare_collective(collective(OpKind::kAllReduce, 2, 2), {4}, {kOut});
  compare_collective(collective(OpKind::kReduceScatter, 3, 1), {6}, {kOut});
  compare_collective(collective(OpKind::kAllGather, 1, 3), {2}, {kOut});
  compare_collective(collective(OpKind::kBroadcast, 1, 1), {2}, {kOut});
  compare_collective(collective(OpKind::kAllToAll, 3, 3), {6}, {kOut});
  compare_collective(in_place(OpKind::kAllReduce), {5, 2}, {kIn, kOut});
  compare_collective(in_place(OpKind::kAllGather), {5, 2}, {kIn, kOut});
}

TEST_CASE("members that bring different sizes fail with the op's name") {
  NEEDS_DEVICE();
  ByHand device(2, GroupRole::kData);
  device.submit(0, collective(OpKind::kAllReduce, 2, 2));
  device.submit(1, collective(OpKind::kAllReduce, 3, 3));
  CHECK_THROWS_WITH(device.executor().finish(),
                    Catch::Contains("all_reduce of collective") && Catch::Contains("another member brings"));
}

TEST_CASE("a member that never comes is a deadlock, with the op that waits for it") {
  NEEDS_DEVICE();
  ByHand device(2, GroupRole::kData);
  device.submit(0, collective(OpKind::kAllReduce, 2, 2));
  CHECK_THROWS_WITH(device.executor().finish(),
                    Catch::Contains("deadlock: rank 0 in all_reduce of collective"));
}

TEST_CASE("a submission runs after those that it comes after") {
  NEEDS_DEVICE();
  ByHand device(2, GroupRole::kData);
  std::int32_t before = -1;
  for (int i = 0; i < 20; ++i) {
    const int rank = i % 2;
    before = device.submit(rank, one_add(), before < 0 ? std::vector<std::int32_t>{} : std::vector{before});
  }
  device.executor().finish();
  device.recorder().finish(device.executor().now());
  const std::vector<Span>& spans = device.recorder().timeline().spans;
  REQUIRE(spans.size() == 20);
  std::vector<Time> start(20), end(20);
  for (const Span& span : spans) start[span.sequence] = span.start, end[span.sequence] = span.end;
  const Time rounding{200000};  // two ranks tell events from anchors of their own
  for (int i = 1; i < 20; ++i) CHECK(start[i] + rounding >= end[i - 1]);
}

TEST_CASE("spans of one lane follow each other, within the time of the run") {
  NEEDS_DEVICE();
  TrainingJob job = small_job(small_model(AttentionKind::kMla));
  job.plan.dp = job.plan.ep = 2;
  DeviceRun run(job, {});
  run.run();
  run.recorder().finish(run.end());
  std::map<std::pair<std::int32_t, Lane>, Time> last;
  for (const Span& span : run.recorder().timeline().spans) {
    Time& end = last[{span.rank_class, span.lane}];
    CHECK(span.start >= end);
    CHECK(span.end >= span.start);
    CHECK(span.work_start <= span.end);
    end = span.end;
  }
  CHECK(run.end() > Time{});
  CHECK(run.end() <= run.executor().now() + Time{1000000});
}

TEST_CASE("ranks in turns compute one op after the other, and compute the same") {
  NEEDS_DEVICE();
  TrainingJob job = small_job(small_model(AttentionKind::kMla));
  job.plan.dp = job.plan.ep = 2;
  DeviceRun apart(job, {}), in_turns(job, {.turns = true});
  const double loss = apart.run().loss(0);
  CHECK(in_turns.run().loss(0) == loss);
  in_turns.recorder().finish(in_turns.end());
  const Timeline& timeline = in_turns.recorder().timeline();
  std::map<std::pair<std::int32_t, std::int32_t>, OpKind> kinds;
  for (const OpRow& op : timeline.ops) kinds[{op.fragment, op.index}] = op.kind;
  std::vector<Span> spans;
  for (const Span& span : timeline.spans)
    if (!is_communication(kinds.at({timeline.submissions[span.sequence].fragment, span.op})))
      spans.push_back(span);
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  REQUIRE(spans.size() > 50);
  constexpr Time kClock{2'000};  // what events tell, and what is rounded
  for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i - 1].end <= spans[i].start + kClock);
}

TEST_CASE(
    "memory of the device stops growing after the first step, and nothing is kept for a backward pass") {
  NEEDS_DEVICE();
  const auto reserved = [](int steps) {
    TrainingJob job = small_job(small_model(AttentionKind::kMla));
    job.workload.steps = steps;
    job.plan.dp = job.plan.ep = 2;
    DeviceRun run(job, {});
    CudaExecutor& executor = run.run();
    for (int rank = 0; rank < run.ranks(); ++rank) CHECK(executor.num_microbatch_tensors(rank) == 0);
    return executor.reserved_bytes();
  };
  CHECK(reserved(6) == reserved(1));
}

TEST_CASE("the same job gives the same bits") {
  NEEDS_DEVICE();
  TrainingJob job = small_job(small_model(AttentionKind::kGqa));
  job.workload.steps = 3;
  job.plan.dp = job.plan.ep = 2;
  const auto weights = [&] {
    DeviceRun run(job, {.poison = true});
    CudaExecutor& executor = run.run();
    std::vector<Numbers> all;
    for (int rank = 0; rank < run.ranks(); ++rank) {
      all.push_back(executor.parameter(rank, Role::kQkv, 0));
      all.push_back(executor.parameter(rank, Role::kExpertDown, 1));
    }
    return all;
  };
  CHECK(weights() == weights());
}

TEST_CASE("the device's clock keeps to the host's") {
  NEEDS_DEVICE();
  ByHand device(1, GroupRole::kData);
  for (int i = 0; i < 50; ++i) device.submit(0, one_add());
  device.executor().finish();
  const Time drift = device.executor().clock_drift();
  WARN("clock drift over " << device.executor().now().ns << " ns: " << drift.ns << " ns");
  CHECK(std::abs(drift.ns) < 1000000);  // beside what aligning costs: two round trips to the device
}

}  // namespace moebius
