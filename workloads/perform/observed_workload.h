// A workload that tells somebody of each submission before it is issued, and can let everything end that came
// before some step.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "workloads/schedule/executor.h"

namespace moebius {

class ObservedWorkload : public Workload {
 public:
  using Observer = std::function<void(const Submission&)>;

  // `barrier`: the first step that waits for all submissions of earlier ones; none by default.
  ObservedWorkload(Workload& workload, Observer observer,
                   std::int32_t barrier = std::numeric_limits<std::int32_t>::max())
      : workload_(workload), observer_(std::move(observer)), barrier_(barrier) {}

  const Layout& layout() const override { return workload_.layout(); }
  std::optional<Submission> next(Time now) override {
    if (!held_) held_ = workload_.next(now);
    const bool waits = held_ && held_->step >= barrier_ && under_way_ > 0;
    if (!held_ || waits) return std::nullopt;
    if (held_->step >= barrier_) barrier_ = std::numeric_limits<std::int32_t>::max();
    observer_(*held_);
    ++under_way_;
    return std::exchange(held_, std::nullopt);
  }
  void completed(const Completion& completion) override {
    --under_way_;
    workload_.completed(completion);
  }
  bool done() const override { return workload_.done(); }
  double progress() const override { return workload_.progress(); }
  Time due() const override { return workload_.due(); }

 private:
  Workload& workload_;
  Observer observer_;
  std::int32_t barrier_;
  std::optional<Submission> held_;
  std::int64_t under_way_ = 0;
};

}  // namespace moebius
