// The least time that an op can take on a rank, whatever runs beside it: what a compute op takes alone on all
// cores that it may hold; of communication, the bytes that must leave or reach the rank over the widest way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hw/cluster.h"
#include "workloads/cost/cost_source.h"
#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"

namespace moebius {

enum class Costing : std::uint8_t {
  kAsPlanned,      // compute ops hold the cores that the plan leaves them
  kAllCores,       // they hold all, whatever they leave to communication
  kExpertsAtPeak,  // so, and products of routed experts run at the chip's peak, however experts are spread
};

// Of ranks of `rank_class`, all on one pool of the cluster. 0 where nothing is known.
//
// Collectives (Thakur et al. 2005, the bandwidth terms), n members, of which `inside` share a node and its
// NICs: over the scale-up link k (inside - 1) / inside of the payload, k = 2 for an all-reduce that no switch
// adds up, else 1; over the NICs of a node k (nodes - 1) / nodes of it, shared by `inside` of them. A message
// between stages passes one link or one NIC, dispatch and combine each token once to each other node.
class LeastSeconds {
 public:
  LeastSeconds(const Cluster& cluster, const Pool& pool, const CostSource& costs, Costing costing)
      : cluster_(cluster),
        pool_(pool),
        part_(part_of_fabric(pool, cluster.fabric.spec())),
        costs_(costs),
        costing_(costing) {}

  std::vector<double> of(const Fragment& fragment, const RankClass& rank_class) const;
  double of_communication(const Fragment& fragment, const Op& op, const RankClass& rank_class) const;

 private:
  double of_message(const Op& op, const Group& group) const;
  double of_exchange(const Fragment& fragment, const Op& op, const Group& group) const;
  double of_collective(const Op& op, const Group& group) const;
  int inside(const Group& group) const;  // members on the node of the first one

  const Cluster& cluster_;
  const Pool& pool_;
  FabricPool part_;
  const CostSource& costs_;
  Costing costing_;
};

}  // namespace moebius
