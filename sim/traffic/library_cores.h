// The multiprocessors that a library's kernels hold while they communicate: one for each channel of the call,
// from when a member has launched it, also while it waits for the others, until it has ended. What computes
// beside them has the rest.
#pragma once

#include "hw/cluster.h"
#include "sim/traffic/collectives.h"
#include "workloads/cost/collective_model.h"
#include "workloads/cost/nodes_model.h"

namespace moebius {

// In a scale-up domain. 0 on chips whose communication has engines of its own.
int cores_of_call(const Accelerator& chip, const LinkConstants& link, const CollectiveCall& call,
                  Protocol protocol);
// Between nodes.
int cores_of_call(const Accelerator& chip, const NodesCall& call);
// See Op::units.
int cores_of_push_kernels(const Accelerator& chip);
// Where the structure alone tells the time (full meshes, several kinds of chips, large super-nodes), the
// kernels are a library's all the same: the fewest that a member's chip gives them. 0 where some chip is not
// known to have any.
int cores_of_members(const CollectiveQuery& query, const GroupSites& group, const Cluster& cluster);

}  // namespace moebius
