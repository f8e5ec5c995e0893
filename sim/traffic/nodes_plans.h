// Collectives between nodes as the chip's library carries them out (workloads/cost/nodes_model.h): which
// algorithm and protocol its tuner takes, the bytes of that on the wires of the fabric, and the time beyond
// them as latency, so that on an idle network a call takes what the model says and beside others what the
// wires leave it.
#pragma once

#include <optional>
#include <vector>

#include "hw/cluster.h"
#include "sim/traffic/collectives.h"
#include "sim/traffic/library_calls.h"
#include "sim/traffic/step_builder.h"
#include "workloads/cost/nodes_model.h"
#include "workloads/report/collective_choice.h"

namespace moebius {

// Empty where the structure alone decides: groups on one node, on chips of several kinds or without a library
// of NCCL's kind, with messages through host memory, and is_unlike_measured() in a node.
std::optional<NodesCall> nodes_call(const CollectiveCall& call, const GroupSites& group,
                                    const Cluster& cluster);

struct NodesPlan {
  AlgorithmTime chosen;  // with its protocol
  Step step;
  bool in_network = false;  // summed up by the switches of the network
};

// By the tuner: the algorithm that it takes to be the fastest, of all-to-all the one that is. Sums that the
// switches of a network can carry out they do where that is faster.
class NodesPlanner {
 public:
  NodesPlanner(const NodesCall& call, const GroupSites& group, const Cluster& cluster, StepBuilder& builder)
      : call_(call),
        group_(group),
        fabric_(cluster.fabric),
        full_mesh_(stands_in_full_mesh(group, cluster)),
        builder_(builder) {}

  // single_messages: on a network of these, which has no switches that reduce.
  std::vector<Algorithm> algorithms(bool single_messages) const;
  NodesPlan plan(Algorithm algorithm);
  NodesPlan tuned(const std::vector<Algorithm>& algorithms);
  AlgorithmTime time_of(Algorithm algorithm);  // as plan() has it, of those planned before without another
  // Where network and library have it; single_messages as above.
  std::optional<NodesPlan> in_network(bool single_messages);

 private:
  Traffic traffic(Algorithm algorithm, Protocol protocol, bool in_network) const;

  const NodesCall& call_;
  const GroupSites& group_;
  const Fabric& fabric_;
  bool full_mesh_;
  StepBuilder& builder_;
  std::vector<AlgorithmTime> planned_;
};

}  // namespace moebius
