// A network whose parts break and slow down while a run goes on. At the time of a fault the wires' capacity
// changes. A message on a broken path stands still until its two NICs take other ways: those that routing
// finds around what is broken (FlowPaths), which are other ports, or other NICs of the two nodes with detours
// inside these. That is Failover::in_collective after the pair of NICs first missed a packet, or when the
// control plane has mitigated, or when the part is whole again. A step that begins later goes around at once
// where its NICs know. What has once moved does not move back; steps that begin later do. Adaptive switches
// see queues: when a part slows down or is itself again, what goes on between leaves is levelled anew at
// once.
//
// Left out: messages that were under way in a switch when it broke are not sent twice; the receiver's part of
// the agreement costs nothing beyond the time above.
#pragma once

#include <memory>

#include "hw/cluster.h"
#include "sim/faults/fault_log.h"
#include "sim/network/network.h"
#include "sim/network/wire_table.h"

namespace moebius {

struct FailingParts {
  std::unique_ptr<Network> network;  // that can replace() steps
  const Cluster& cluster;
  WireTable& table;
  const FaultPlan& plan;
  const std::vector<Occurrence>& occurrences;  // those of slow nodes are not its business
  FaultLog& log;
  std::uint64_t seed = 0;  // of the hash that picks paths
};

// All that is referred to must outlive it; steps must have parts (Cluster::ports_may_fail).
std::unique_ptr<Network> make_failing_network(FailingParts parts);

}  // namespace moebius
