#include <deque>

#include <catch2/catch.hpp>

#include "small_schedule.h"
#include "workloads/schedule/executor.h"
#include "workloads/schedule/recorder.h"

using namespace moebius;

namespace {

// Gives `total` submissions, never more than `ahead` that have not completed.
class Windowed : public Workload {
 public:
  Windowed(int total, int ahead) : total_(total), ahead_(ahead) {}

  const Layout& layout() const override { return layout_; }
  std::optional<Submission> next(Time) override {
    if (issued_ == total_ || issued_ - completed_ == ahead_) return std::nullopt;
    return Submission{.fragment = fragment_, .sequence = issued_++, .after = {}};
  }
  void completed(const Completion&) override { ++completed_; }
  bool done() const override { return issued_ == total_; }
  double progress() const override { return static_cast<double>(completed_) / total_; }
  int completed() const { return completed_; }

 private:
  Layout layout_ = small_layout(2, true);
  FragmentPtr fragment_ = freeze(small_fragment());
  int total_, ahead_, issued_ = 0, completed_ = 0;
};

// Completes one submission at a time, 40 ns each.
class OneByOne : public Executor {
 public:
  explicit OneByOne(Recorder& recorder) : recorder_(recorder) {}

  Time now() const override { return now_; }
  void submit(const Submission& submission) override {
    queue_.push_back(submission.sequence);
    most_ = std::max(most_, queue_.size());
  }
  std::vector<Completion> wait(Time) override { return {run_next()}; }
  Time finish() override {
    while (!queue_.empty()) run_next();
    return now_;
  }
  std::size_t most() const { return most_; }

 private:
  Completion run_next() {
    const std::int32_t sequence = queue_.front();
    queue_.pop_front();
    for (int op = 0; op < 4; ++op) {
      recorder_.span({.sequence = sequence, .op = op, .start = now_, .end = now_ + Time{10}});
      now_ += Time{10};
    }
    return {sequence, now_};
  }

  Recorder& recorder_;
  std::deque<std::int32_t> queue_;
  std::size_t most_ = 0;
  Time now_;
};

}  // namespace

TEST_CASE("a workload runs to its end, with as much in flight as it gives") {
  Windowed workload(10, 3);
  Recorder recorder(workload.layout(), {});
  OneByOne executor(recorder);
  std::vector<double> progress;
  const Time end = execute(workload, executor, recorder, [&](double p) { progress.push_back(p); });
  REQUIRE(end == Time{400});
  REQUIRE(executor.most() == 3);
  REQUIRE(recorder.timeline().submissions.size() == 10);
  REQUIRE(recorder.finish(end).spans == 40);
  // The first seven completions let the last three be issued; of those the workload hears as well.
  REQUIRE(workload.completed() == 10);
  REQUIRE(progress.size() == 10);
  REQUIRE(std::is_sorted(progress.begin(), progress.end()));
}

TEST_CASE("a workload with nothing to do takes no time") {
  Windowed workload(0, 1);
  Recorder recorder(workload.layout(), {});
  OneByOne executor(recorder);
  REQUIRE(execute(workload, executor, recorder) == Time{0});
}
