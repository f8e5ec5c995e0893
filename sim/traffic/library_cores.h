// The multiprocessors that a library's kernels hold while they communicate: one for each channel of the call,
// from when a member has launched it, also while it waits for the others, until it has ended. What computes
// beside them has the rest.
#pragma once

#include "hw/accelerator.h"
#include "workloads/cost/collective_model.h"
#include "workloads/cost/nodes_model.h"

namespace moebius {

// In a scale-up domain. 0 on chips whose communication has engines of its own.
int cores_of_call(const Accelerator& chip, const LinkConstants& link, const CollectiveCall& call,
                  Protocol protocol);
// Between nodes.
int cores_of_call(const Accelerator& chip, const NodesCall& call);

}  // namespace moebius
