// Flows as a Workload: each a message of its own, with its sender and its receiver as ranks of their own, all
// begun at time 0. What is asked is how long each takes beside the others.
#pragma once

#include <vector>

#include "hw/fabric/fabric.h"
#include "workloads/scenario/scenario.h"
#include "workloads/schedule/executor.h"

namespace moebius {

// Flow completion times: until the last byte has arrived and, where the fabric's transport acknowledges, the
// sender knows.
struct FlowTimes {
  std::int64_t count = 0;
  double mean_s = 0, p50_s = 0, p99_s = 0, max_s = 0, min_s = 0;  // percentiles: nearest rank
};

class FlowsRun : public Workload {
 public:
  // `seed` draws the pattern; of `fabric` only the way of acknowledgements is asked, here.
  FlowsRun(const CollectiveWorkload& work, const Fabric& fabric, std::uint64_t seed);

  const Layout& layout() const override { return layout_; }
  std::optional<Submission> next(Time now) override;
  void completed(const Completion& completion) override;
  bool done() const override { return completed_ == 2 * num_flows(); }
  double progress() const override { return completed_ / (2.0 * static_cast<double>(num_flows())); }

  FlowTimes times() const;  // once done

 private:
  std::int64_t num_flows() const { return static_cast<std::int64_t>(flows_.size()); }
  void add_ranks(const DeviceFlow& flow);

  struct Ends {
    FragmentPtr send, receive;
  };
  struct Flow {
    Ends ends;
    Time acknowledgement, end;
  };

  Layout layout_;
  std::vector<Flow> flows_;
  std::int64_t issued_ = 0, completed_ = 0;  // submissions, two of each flow
};

}  // namespace moebius
