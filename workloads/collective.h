// One collective operation over the first `ranks` devices of a cluster, or by several groups of them side by
// side, as a Workload of a single op.
#pragma once

#include <utility>
#include <vector>

#include "workloads/scenario/scenario.h"
#include "workloads/schedule/executor.h"

namespace moebius {

// The one op of a member, in the world group. Not for a message.
FragmentPtr collective_fragment(const CollectiveWorkload& work, int queue = 0);
// Of a message: the sender's op (to the next) and the receiver's (from the previous one).
std::pair<FragmentPtr, FragmentPtr> message_fragments(const CollectiveWorkload& work);

// The machines that the ranks stand on.
struct CollectivePlace {
  int ranks_per_node = 1;
  std::vector<int> pool_devices = {};  // how many each pool of the cluster has; empty: one pool
  const Fabric* fabric = nullptr;      // on which groups may stand unlike; null: all stand alike
};

// The op's payload is exactly `bytes`. Its operands are columns of that many elements, rounded up so that
// every rank can have an equal share, and hold the same numbers on every rank. Folded, one class stands for
// the ranks of a pool whose groups stand alike on pools, leaves, pods and regions; a send and its receive are
// two classes always, and ranks with parts of their own are classes each.
class CollectiveRun : public Workload {
 public:
  explicit CollectiveRun(const CollectiveWorkload& collective, const CollectivePlace& place = {});

  const Layout& layout() const override { return layout_; }
  std::optional<Submission> next(Time now) override;
  void completed(const Completion&) override { ++completed_; }
  bool done() const override { return completed_ == num_classes(); }
  double progress() const override { return static_cast<double>(completed_) / num_classes(); }

 private:
  std::int32_t num_classes() const { return static_cast<std::int32_t>(layout_.classes.size()); }

  Layout layout_;
  std::vector<FragmentPtr> fragments_;  // by class; one for all when they do the same
  std::int32_t issued_ = 0;
  std::int32_t completed_ = 0;
};

}  // namespace moebius
