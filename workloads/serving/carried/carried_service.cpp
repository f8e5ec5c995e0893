#include "workloads/serving/carried/carried_service.h"

#include <algorithm>

#include "workloads/serving/request_lengths.h"

namespace moebius {

CarriedService carried_alone(const ServingJob& job) {
  const ServingPlan& plan = job.plan;
  CarriedService service;
  service.model = job.model;
  service.ranks_per_node = job.ranks_per_node;
  service.workload = job.workload;
  PoolRules rules;
  rules.instance.replicas = plan.replicas();
  rules.instance.balance = ReplicaBalance::kRoundRobin;
  ReplicaRules& replica = rules.instance.replica;
  replica.max_running = plan.max_batch;
  replica.token_budget = std::max<std::int64_t>(1, plan.token_budget);
  replica.chunked = false;
  replica.page_tokens = plan.block_tokens;
  replica.pages = cache_pages(plan, job.workload) - plan.padding_rows();
  service.pools.push_back({rules, plan, 0});
  for (int id = 0; id < job.workload.requests; ++id) {
    const RequestLengths lengths = lengths_of(job.workload, id);
    TrafficRequest& request = service.requests.emplace_back();
    request.input_tokens = lengths.input;
    request.output_tokens = lengths.output;
  }
  return service;
}

ServingJob job_of_pool(const CarriedService& service, const CarriedPool& pool) {
  return {.model = service.model,
          .plan = pool.plan,
          .workload = service.workload,
          .ranks_per_node = service.ranks_per_node};
}

}  // namespace moebius
