// How long a fragment takes on one rank that nobody keeps waiting: a clock for decisions that must be taken
// before there is a schedule to simulate, such as which layers a stage holds.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "hw/cluster.h"
#include "workloads/cost/cost_source.h"
#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// Lanes run their ops in order, an op begins when those that it depends on have ended. Compute takes what the
// chip's built-in cost source says, op by op as in the simulator (op_costs.h), so that a scenario has one
// schedule whatever profiles a caller brings; communication takes what the rank sends over its scale-up link
// or NIC, whichever is the longer, alone; messages between stages take no time: a pipeline in its steady
// state hides them. Seconds.
class FragmentClock {
 public:
  explicit FragmentClock(const Cluster& cluster) : cluster_(cluster) {}

  // On a device of `pool`; groups are those of `rank_class`.
  double seconds(const Fragment& fragment, const RankClass& rank_class, const Pool& pool);

 private:
  double communication_seconds(const Fragment& fragment, const Op& op, const RankClass& rank_class,
                               const Pool& pool) const;
  const CostSource& source(const Accelerator& chip);
  int members_of_node(const Group& group) const;  // of the representative's

  const Cluster& cluster_;
  std::map<std::string, std::unique_ptr<CostSource>> sources_;  // by chip
};

}  // namespace moebius
