// What a training job costs a service beside it on the uplinks of leaves that both stand on, simulated flow
// by flow.
#pragma once

#include <vector>

#include "workloads/cluster/queue/queue_figures.h"
#include "workloads/perform/perform.h"

namespace moebius {

// What a shape's jobs send between their nodes.
struct ShapeTraffic {
  OpKind operation = OpKind::kAllReduce;
  int queue = 0;  // of the links' priority queues
};

// For each service whose replica has several nodes: its tokens alone and with what a training neighbour
// leaves of its network on average, in one queue with it and in a queue of its own. The neighbour is the
// shape whose network is busy most; while it is, an exchange takes as long as beside it on one leaf, flow by
// flow, the rest of the time as long as alone. A decode iteration has the exchanges of all layers and is long
// against a neighbour's.
std::vector<ServiceBeside> services_beside_training(const Job& job, const StartExecutor& start,
                                                    const ShapeSteps& steps,
                                                    const std::vector<ShapeTraffic>& traffic);

}  // namespace moebius
