// The pools of a service as jobs of their own: what one iteration takes there, and how many pages its caches
// have.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hw/units.h"
#include "workloads/scenario/scenario.h"
#include "workloads/serving/kv/page_parts.h"

namespace moebius {

struct Job;

struct ServicePool {
  ServicePhase phase;
  std::unique_ptr<Job> job;  // one instance alone on the pool: its cluster, layout and model; its first stage
  std::unique_ptr<Job> drafter;  // of what makes guesses, on the same devices; null where nothing does
  std::int64_t pages = 0;        // of the cache of a replica
  Bytes weights = {};            // of the fullest device
  Bytes work = {};               // beside them, of the largest iteration
  Bytes runtime = {};            // of each device, of a process without them
  Bytes page_bytes = {};         // on one device
  PageParts parts = {};          // of the layers that a page holds
  Bytes state_bytes = {};        // of a sequence beside its pages, on one device
  std::int32_t states = 0;       // sequences for which there is room; 0: they have none
  Bytes expert_weights = {};     // of a device of theirs, where experts stand apart
  Model model = {};              // as it is served, with the layers of all stages
  std::vector<std::shared_ptr<Job>> further = {};  // stages behind the first one
};

// How many layers stand on each stage: as many on each, those that are left over on the last ones but one
// (vLLM's and SGLang's get_pp_indices).
std::vector<int> layers_of_stages(int layers, int stages);

// run_error when weights leave no room for a page, or the largest iteration does not fit beside the share.
ServicePool service_pool(const Scenario& scenario, const ServicePhase& phase);
std::vector<ServicePool> service_pools(const Scenario& scenario);  // of all phases

}  // namespace moebius
