// A service that is carried out iteration by iteration, on ranks that compute: whatever decides (replicas,
// router, hand-over, balancer) is what decides in a simulated service. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/serving/balancing/expert_balancer.h"
#include "workloads/serving/plan.h"
#include "workloads/serving/system/serving_system.h"
#include "workloads/serving/traffic/traffic_request.h"

namespace moebius {

struct CarriedPool {
  PoolRules rules;   // no step cost: time is what passes
  ServingPlan plan;  // of one instance
  int first_device = 0;
  std::int64_t device_pages =
      0;                       // of a replica's cache on the devices; `rules` have no more than may be used
  BalancerShape experts = {};  // where they are placed
};

struct CarriedService {
  Model model;
  int ranks_per_node = 1;
  std::vector<CarriedPool> pools;  // that do both, or some of each other role
  RouterPolicy router = RouterPolicy::kRoundRobin;
  std::vector<RequestClass> classes = {{}};
  ExpertBalancePlan experts = {};
  ExpertDrift drift = {};
  ServingWorkload workload;              // popularity and seed; its lengths bound those of the requests
  std::vector<TrafficRequest> requests;  // in the order of their arrival
  double rate_scale = 1;                 // times faster than they say
  std::int64_t users = 0;                // see ServiceTraffic
  bool several() const { return pools.size() > 1 || pools.front().rules.instances > 1; }
};

// One instance that both prefills and decodes, requests all there at once and dealt to its replicas in turn,
// prompts whole and first, and a cache that never fills.
CarriedService carried_alone(const ServingJob& job);

// The job of an instance of a pool: its ranks alone.
ServingJob job_of_pool(const CarriedService& service, const CarriedPool& pool);

}  // namespace moebius
