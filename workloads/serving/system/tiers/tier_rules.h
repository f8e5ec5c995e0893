// The tiers below the replicas of one pool in figures: who stands on which node, how many bytes a block has,
// what every way takes.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/kv/tier_law.h"
#include "workloads/serving/system/step.h"
#include "workloads/serving/system/tiers/tier_plan.h"

namespace moebius {

struct TierRules {
  TierPlan plan;
  std::vector<std::int32_t> node_of;  // by replica of the pool
  std::vector<std::int32_t> rank_of;  // among the replicas of its node: NICs of equal rank meet
  std::int32_t nodes = 1;
  double block_bytes = 0;  // of all layers, as the tiers below keep it
  std::int32_t block_tokens = 0;
  std::int32_t pieces = 1;  // a block's reads and writes of a drive
  double copies = 1;        // that the ranks of a replica have of a block in device memory, together
  std::int64_t dram_blocks = 0, ssd_blocks = 0;  // of a node
  ByteRate host_link;                            // of a replica, each direction
  Time host_latency;                             // of a copy
  ByteRate memory;                               // of a node, both directions together
  kv::ServiceLaw ssd_read, ssd_write;            // of one drive
  ByteRate nic;                                  // of a replica, each direction
  std::int32_t replicas_on_nic = 1;              // neighbours of a node that share it
  Time fabric_latency;                           // one way
  std::int32_t layers = 1;                       // of the model
  double depth_cost = 0;                         // see kv::EvictionOptions
  StepCost* cost = nullptr;         // of an iteration of the pool's instances; outlives the tiers
  std::int32_t replicas = 1;        // of an instance
  std::int64_t token_budget = 1;    // of an iteration of a replica
  std::int64_t absorbed_below = 0;  // as ReplicaRules
};

}  // namespace moebius
