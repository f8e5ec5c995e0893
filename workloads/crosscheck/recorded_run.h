// What a run issued, issued again: the same submissions with the same numbers, whatever the clock says, each
// after those that it came after (Submission::after).
#pragma once

#include <memory>
#include <vector>

#include "workloads/schedule/executor.h"

namespace moebius {

struct RecordedSchedule {
  Layout layout;
  std::vector<Submission> submissions;  // by sequence, from 0 on
};

class RecordedRun : public Workload {
 public:
  explicit RecordedRun(std::shared_ptr<const RecordedSchedule> schedule) : schedule_(std::move(schedule)) {}

  const Layout& layout() const override { return schedule_->layout; }
  std::optional<Submission> next(Time) override {
    if (next_ == schedule_->submissions.size()) return std::nullopt;
    return schedule_->submissions[next_++];
  }
  void completed(const Completion&) override { ++completed_; }
  bool done() const override { return completed_ == schedule_->submissions.size(); }
  double progress() const override {
    return static_cast<double>(completed_) / static_cast<double>(schedule_->submissions.size());
  }

 private:
  std::shared_ptr<const RecordedSchedule> schedule_;
  std::size_t next_ = 0, completed_ = 0;
};

}  // namespace moebius
