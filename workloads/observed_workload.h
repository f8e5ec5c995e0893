// A workload that tells somebody of each submission before it is issued.
#pragma once

#include <functional>
#include <utility>

#include "workloads/schedule/executor.h"

namespace moebius {

class ObservedWorkload : public Workload {
 public:
  using Observer = std::function<void(const Submission&)>;

  ObservedWorkload(Workload& workload, Observer observer)
      : workload_(workload), observer_(std::move(observer)) {}

  const Layout& layout() const override { return workload_.layout(); }
  std::optional<Submission> next(Time now) override {
    std::optional<Submission> submission = workload_.next(now);
    if (submission) observer_(*submission);
    return submission;
  }
  void completed(const Completion& completion) override { workload_.completed(completion); }
  bool done() const override { return workload_.done(); }
  double progress() const override { return workload_.progress(); }
  Time due() const override { return workload_.due(); }

 private:
  Workload& workload_;
  Observer observer_;
};

}  // namespace moebius
