// What decides in a pool of a service, as its plan says: the same whether its iterations are timed, simulated
// or carried out.
#pragma once

#include "workloads/service/pools.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {

// What a replica of so many ranks sends to others: devices may share a NIC. Where a node has none, by the
// devices' own.
ByteRate send_rate(const Cluster& cluster, int ranks);
// Replicas of so many ranks that share a NIC.
int replicas_on_nic(const Cluster& cluster, int ranks);

// Of so many sequences at once on a replica, those of the fullest lane of its pipeline.
std::int32_t of_lane(std::int32_t sequences, const ServingPlan& plan);
// Batches under way in a pipeline: as many as stages, but no more than sequences at once.
int lanes_of(const ServicePool& pool);

// See ReplicaRules: 0 where prompts do not choose, be it that each query has keys of its own or ranks cut
// them.
std::int64_t absorbed_below(const ServicePool& pool);

// Without costs, tiers and prices.
PoolRules pool_rules(const ServicePlan& service, const ServicePool& pool);

}  // namespace moebius
