#include "workloads/service/rules.h"

#include <algorithm>

#include "workloads/job.h"
#include "workloads/service/engine.h"
#include "workloads/service/tiers.h"
#include "workloads/service/token_bytes.h"
#include "workloads/serving/latent_parts.h"

namespace moebius {

ByteRate send_rate(const Cluster& cluster, int ranks) {
  const Pool& pool = cluster.pools.front();
  const FabricPool part = part_of_fabric(pool, cluster.fabric.spec());
  if (part.nic_rate.value == 0) return pool.accelerator.nic_rate * ranks;
  return part.nic_rate * std::max(1, ranks / part.devices_per_nic);
}

int replicas_on_nic(const Cluster& cluster, int ranks) {
  const FabricPool part = part_of_fabric(cluster.pools.front(), cluster.fabric.spec());
  return part.nic_rate.value == 0 ? 1 : std::max(1, part.devices_per_nic / ranks);
}

std::int32_t of_lane(std::int32_t sequences, const ServingPlan& plan) {
  return (sequences + plan.pp - 1) / plan.pp;
}

namespace {

// Stages send and take in their layers at once, but for those that share a NIC.
int sending_stages(const Cluster& cluster, const ServingPlan& plan) {
  const FabricPool part = part_of_fabric(cluster.pools.front(), cluster.fabric.spec());
  if (part.nic_rate.value == 0) return plan.pp;
  return std::clamp(plan.pp * plan.ranks() / part.devices_per_nic, 1, plan.pp);
}

// Sequences at once on a replica: whose states of delta networks have room, too.
std::int32_t most_running(const ServicePool& pool) {
  return pool.states > 0 ? pool.states : pool.phase.plan.max_batch;
}

}  // namespace

std::int64_t absorbed_below(const ServicePool& pool) {
  const ServingPlan& plan = pool.phase.plan;
  return attends_over_latents(pool.model) && plan.cp == 1 ? plan.absorbed_below : 0;
}

// A lane without a sequence has no batch.
int lanes_of(const ServicePool& pool) {
  return std::min(pool.phase.plan.pp, most_running(pool));
}

PoolRules pool_rules(const ServicePlan& service, const ServicePool& pool) {
  const Scenario& scenario = pool.job->scenario;
  const ServingPlan& plan = pool.phase.plan;
  const Model& model = pool.model;
  PoolRules rules;
  rules.name = scenario.cluster->pools.front().name;
  rules.role = pool.phase.role;
  rules.lanes = lanes_of(pool);
  rules.instances = pool.phase.instances * rules.lanes;  // a lane of a pipeline counts as one
  rules.running = most_running(pool);
  rules.instance.replicas = plan.replicas();
  rules.instance.balance = service.balance;
  rules.instance.host = service.host;
  ReplicaRules& replica = rules.instance.replica;
  replica.policy = pool.phase.batching;
  replica.max_running = of_lane(rules.running, plan);
  replica.token_budget = plan.token_budget;
  replica.chunked = pool.phase.chunked;
  replica.page_tokens = plan.block_tokens;
  replica.pages = pool.pages;
  replica.parts = pool.parts;
  replica.output_reserve = service.output_reserve;
  if (pool.phase.role == PoolRole::kBoth) {
    replica.first_reserve = service.first_reserve;
    replica.reserve_decay = service.reserve_decay;
    replica.newcomer_reserve = service.newcomer_reserve;
  }
  replica.absorbed_below = absorbed_below(pool);
  if (service.prefix_cache && scenario.traffic.source && pool.phase.role != PoolRole::kDecode)
    replica.shared_tokens = static_cast<std::int32_t>(scenario.traffic.source->block_tokens());
  if (replica.shared_tokens > 0) replica.depth_cost = depth_cost(model, replica.shared_tokens);
  replica.eviction = service.tiers.eviction;
  if (service.tiers.on() && service.tiers.layerwise) rules.instance.load_layers = model.layers;
  if (pool.phase.role != PoolRole::kPrefill) replica.speculation = service.speculation;
  replica.seed = scenario.seed;
  rules.wan = pool.phase.wan;
  rules.sending_stages = sending_stages(*scenario.cluster, plan);
  rules.transfer_rate = send_rate(*scenario.cluster, plan.tp * plan.cp) * rules.sending_stages;
  rules.replicas_on_port = replicas_on_nic(*scenario.cluster, plan.tp * plan.cp);
  rules.cache_bytes_per_token = token_bytes(model, plan).of_decode + token_bytes_of_drafter(pool).of_decode;
  set_engine_rules(service, pool, rules.instance);
  return rules;
}

}  // namespace moebius
