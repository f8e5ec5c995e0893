// What the machine needs to know of a fragment, prepared when it is first submitted and kept for the
// submissions that repeat it: the order on each lane, who waits for whom, costs, transfer plans.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/traffic/transfer_plans.h"
#include "workloads/cost/op_costs.h"
#include "workloads/cost/remembered_costs.h"

namespace moebius {

// A fragment as one class executes it.
class ClassUse {
 public:
  ClassUse(const Fragment& fragment, int rank_class, OpCosts& shared, std::unique_ptr<OpCosts> own);

  const OpCost& cost(std::int32_t op, int cores) {
    return (has_own_cost_[op] ? *own_ : shared_).at(op, cores);
  }
  // Null for compute ops and receives.
  const TransferPlan* plan(std::int32_t op, TransferPlans& plans) {
    if (!plans_[op]) plans_[op] = plans.plan(fragment_, op, rank_class_);
    return plans_[op].get();
  }
  // That a communication op holds, at least 0.
  int communication_cores(std::int32_t op, TransferPlans& plans) {
    const Op& asked = fragment_.ops[op];
    if (asked.units > 0 || asked.units == kCopyEngines) return std::max<int>(0, asked.units);
    return is_collective(asked.kind) ? plan(op, plans)->cores : 0;
  }

 private:
  const Fragment& fragment_;
  int rank_class_;
  OpCosts& shared_;                         // of all classes with this chip
  std::unique_ptr<OpCosts> own_;            // of ops with member loads
  std::vector<std::uint8_t> has_own_cost_;  // a bool each, to look at fast
  std::vector<std::shared_ptr<const TransferPlan>> plans_;
};

// What the machine asks of every op, close together: the ops themselves fill the caches.
struct OpUse {
  std::int16_t units = 0;  // see Op
  Lane lane = Lane::kCompute;
  bool communicates = false;
  bool on_host = false;     // takes none of the device
  bool host_reads = false;  // the host launches it once the device has come to it (Launches::reached)
};

struct FragmentUse {
  FragmentPtr fragment;
  std::vector<OpUse> ops;
  std::array<std::vector<std::int32_t>, kNumLanes> lane_ops;
  std::vector<std::int32_t> first_successor,
      successors;  // those of op i: [first_successor[i], first_successor[i + 1])
  std::vector<std::int32_t> num_dependencies;
  int live = 0;                                      // submissions that use it now
  std::vector<std::unique_ptr<OpCosts>> pool_costs;  // by pool
  std::vector<std::unique_ptr<ClassUse>> classes;    // by class
};

class FragmentUses {
 public:
  // `powers`: by pool; null where clocks stay full.
  FragmentUses(const Cluster& cluster, const Layout& layout, const std::vector<const CostSource*>& sources,
               const std::vector<ClockPower>* powers, TransferPlans& plans);

  // Throws run_error when an op wants cores that the chip has not.
  FragmentUse& acquire(const FragmentPtr& fragment, int rank_class);
  void release(FragmentUse& use) { --use.live; }
  int size() const { return static_cast<int>(uses_.size()); }

 private:
  std::unique_ptr<FragmentUse> prepare(const FragmentPtr& fragment) const;
  std::unique_ptr<ClassUse> prepare_class(FragmentUse& use, int rank_class);
  void check_cores(const Fragment& fragment, const Accelerator& accelerator) const;
  void forget_idle();

  const Cluster& cluster_;
  const Layout& layout_;
  std::deque<RememberedCosts> sources_;  // by pool
  DistinctCosts distinct_costs_;         // of all fragments
  const std::vector<ClockPower>* powers_;
  std::vector<int> pool_of_class_;
  TransferPlans& plans_;
  std::unordered_map<const Fragment*, std::unique_ptr<FragmentUse>> uses_;
  std::size_t most_kept_ = 256;
};

}  // namespace moebius
