// Which kernels ran for which op: by CUPTI on a GPU, by the bodies that ran in the rehearsal.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <unistd.h>

#include "tests/gpu/device_tests.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

// A step of the small model on two ranks, traced; or why it cannot be.
class TracedRun {
 public:
  TracedRun() {
    TrainingJob job = small_job(small_model(AttentionKind::kGqa));
    job.plan.ep = 2;
    job.plan.dp = 2;
    training_ = std::make_unique<Training>(job);
    recorder_ = std::make_unique<Recorder>(training_->layout(), RecorderOptions{.detail = Detail::kOps});
    executor_ = make_cuda_executor(training_->layout(), *recorder_, {});
    try {
      executor_->trace_kernels();
    } catch (const Error& error) {
      refused_ = error.what();
      return;
    }
    recorder_->finish(execute(*training_, *executor_, *recorder_));
    activities_ = executor_->take_trace();
  }

  const std::string& refused() const { return refused_; }
  const std::vector<cuda::OpActivity>& activities() const { return activities_; }
  const Timeline& timeline() const { return recorder_->timeline(); }

 private:
  std::unique_ptr<Training> training_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<CudaExecutor> executor_;
  std::vector<cuda::OpActivity> activities_;
  std::string refused_;
};

#define NEEDS_TRACE(run)                  \
  if (!(run).refused().empty()) {         \
    WARN("skipped: " << (run).refused()); \
    return;                               \
  }                                       \
  static_cast<void>(0)

using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // sequence, op, rank

TEST_CASE("every op that multiplies matrices has kernels in the trace, and all that is traced is an op's") {
  NEEDS_DEVICE();
  const TracedRun run;
  NEEDS_TRACE(run);
  REQUIRE_FALSE(run.activities().empty());
  std::map<Key, OpKind> traced;
  for (const auto& [op, activity] : run.activities()) {
    traced[{op.sequence, op.op, op.rank}] = op.kind;
    CHECK(activity.start <= activity.end);
    CHECK_FALSE(activity.name.empty());
  }
  std::map<std::pair<std::int32_t, std::int32_t>, OpKind> kinds;  // by fragment, op
  for (const OpRow& row : run.timeline().ops) kinds[{row.fragment, row.index}] = row.kind;
  int products = 0;
  for (const Span& span : run.timeline().spans) {
    const auto found = traced.find({span.sequence, span.op, span.rank_class});
    const OpKind kind = kinds.at({run.timeline().submissions[span.sequence].fragment, span.op});
    if (found != traced.end()) CHECK(found->second == kind);
    if (kind != OpKind::kGemm) continue;
    ++products;
    CHECK(found != traced.end());
  }
  CHECK(products > 10);
}

TEST_CASE("kernels of one lane run in the order of its ops") {
  NEEDS_DEVICE();
  const TracedRun run;
  NEEDS_TRACE(run);
  std::vector<cuda::OpActivity> by_start = run.activities();
  std::sort(by_start.begin(), by_start.end(),
            [](const auto& a, const auto& b) { return a.activity.start < b.activity.start; });
  std::map<std::uint32_t, Key> last;  // by stream
  for (const auto& [op, activity] : by_start) {
    const Key key{op.sequence, op.op, op.rank};
    const auto before = last.find(activity.stream);
    if (before != last.end() && std::get<2>(before->second) == op.rank &&
        std::get<0>(before->second) == op.sequence) {
      CHECK(std::get<1>(before->second) <= op.op);
    }
    last[activity.stream] = key;
  }
}

TEST_CASE("the table of a trace has a line for each activity, and names stay on it") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("moebius-kernels-" + std::to_string(getpid()))).string();
  const cuda::TracedOp op{.sequence = 3, .op = 7, .rank = 1, .kind = OpKind::kGemm};
  cuda::write_activities(path, {{op, {.owner = 0, .name = "a\tb\n", .start = {5}, .end = {9}, .stream = 2}}});
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  CHECK(text == "sequence\trank\top\tkind\tstart_ns\tend_ns\tstream\tname\n3\t1\t7\tgemm\t5\t9\t2\ta b \n");
  std::filesystem::remove(path);
}

TEST_CASE("a trace that cannot be written is a sentence") {
  CHECK_THROWS_WITH(cuda::write_activities("/nowhere/kernels.tsv", {}),
                    "/nowhere/kernels.tsv: cannot be written: No such file or directory");
}

}  // namespace
}  // namespace moebius
