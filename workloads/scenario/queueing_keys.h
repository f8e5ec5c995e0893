// Many jobs on one cluster: the key `queueing` of a cluster's scenario.
#pragma once

#include "workloads/scenario/scenario.h"
#include "workloads/scenario/section.h"

namespace moebius {

// Into scenario.operations->queueing, whose plan of faults and recovery was read before; `models` is null
// when describing. The pools of the cluster become those of the scheduler.
void read_queueing(Section& top, Scenario& scenario, const ModelCatalog* models);
// Quotas are at most the whole, names are those of queues and pools, sizes fit on nodes.
void check_queueing(const Scenario& scenario, const Document& document);

}  // namespace moebius
