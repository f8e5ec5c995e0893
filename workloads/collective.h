// One collective operation over the first `ranks` devices of a cluster, as a Workload of a single op.
#pragma once

#include "workloads/scenario.h"
#include "workloads/schedule/executor.h"

namespace moebius {

class CollectiveRun : public Workload {
 public:
  CollectiveRun(const CollectiveWorkload& collective, bool fold, int ranks_per_node);

  const Layout& layout() const override { return layout_; }
  std::optional<Submission> next(Time now) override;
  void completed(const Completion&) override { ++completed_; }
  bool done() const override { return completed_ == static_cast<int>(layout_.classes.size()); }
  double progress() const override { return done() ? 1 : 0; }

 private:
  Layout layout_;
  FragmentPtr fragment_;
  int issued_ = 0;
  int completed_ = 0;
};

}  // namespace moebius
