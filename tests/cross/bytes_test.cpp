// What the execution moved is what the schedule says: the same bytes on every group, rank by rank.
#include <map>
#include <vector>

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/cross/small_training.h"
#include "workloads/schedule/work.h"

namespace moebius {
namespace {

// Passes a workload on and keeps what it issued.
class Issued : public Workload {
 public:
  explicit Issued(const TrainingJob& job) : training_(job) {}

  const Layout& layout() const override { return training_.layout(); }
  std::optional<Submission> next(Time now) override {
    std::optional<Submission> submission = training_.next(now);
    if (submission) submissions.push_back(*submission);
    return submission;
  }
  void completed(const Completion& completion) override { training_.completed(completion); }
  bool done() const override { return training_.done(); }
  double progress() const override { return training_.progress(); }

  std::vector<Submission> submissions;  // by sequence

 private:
  Training training_;
};

void require_equal_bytes(const TrainingJob& job) {
  Issued issued(job);
  Recorder recorder(issued.layout(), {.detail = Detail::kNone});
  HostExecutor<float> executor(issued.layout(), recorder, {});
  execute(issued, executor, recorder);
  std::map<GroupRole, double> moved, predicted;
  for (const Transfer& transfer : executor.transfers()) {
    const Fragment& fragment = *issued.submissions[transfer.sequence].fragment;
    const Op& op = fragment.ops[transfer.op];
    const RankClass& place = issued.layout().classes[transfer.rank];
    const Group& group = place.group(op.group);
    const int member = op.route >= 0 ? place.group(GroupRole::kExpert).my_index : group.my_index;
    const double expected = sent_bytes(op, fragment, static_cast<int>(group.ranks.size()), member);
    moved[op.group] += transfer.sent_bytes;
    predicted[op.group] += expected;
    // Flat shards of a gradient are not all of one size, which evens out over the group.
    const bool exact = op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine ||
                       op.kind == OpKind::kSend || op.kind == OpKind::kRecv;
    if (!exact) continue;
    INFO(fmt::format("{}, {}, rank {}", fragment.name, to_string(op.kind), transfer.rank));
    CHECK(transfer.sent_bytes == Approx(expected).epsilon(1e-12));
  }
  REQUIRE(moved.size() >= 3);
  for (const auto& [group, bytes] : moved) {
    INFO(to_string(group));
    CHECK(bytes > 0);
    CHECK(bytes == Approx(predicted[group]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE(
    "bytes on every group: four experts' ranks, two stages, sharded optimizer, skewed experts, FP8 "
    "dispatch") {
  TrainingJob job = small_job(small_model(AttentionKind::kMla));
  job.plan.dp = 4;
  job.plan.ep = 2;
  job.plan.pp = 2;
  job.plan.zero = 1;
  job.plan.gemm = job.plan.dispatch = DType::kFp8;
  job.workload.popularity = {.kind = PopularityKind::kZipf, .exponent = 0.8};
  require_equal_bytes(job);
}

TEST_CASE("bytes on every group: tensor, sequence and context parallel, replicated optimizer") {
  TrainingJob job = small_job(small_model(AttentionKind::kGqa));
  job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  job.plan.cp = 2;
  job.plan.ep = 4;
  job.plan.recompute = RecomputePolicy::kFull;
  require_equal_bytes(job);
}

TEST_CASE(
    "bytes on every group: experts that ranks share and keys round a ring and heads cut for attention") {
  TrainingJob job = small_job(small_model(AttentionKind::kGqa));
  job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  job.plan.cp = 2;
  job.plan.ep = 2;
  job.plan.expert_tp = 2;
  job.plan.context = ContextKind::kRing;
  require_equal_bytes(job);
  job.plan.tp = 1;
  job.plan.sequence_parallel = false;
  job.plan.dp = 2;
  job.plan.context = ContextKind::kUlysses;
  require_equal_bytes(job);
}

}  // namespace moebius
