#include "workloads/service/tiers.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/model.h"
#include "workloads/job.h"
#include "workloads/service/rules.h"
#include "workloads/service/token_bytes.h"

namespace moebius {
namespace {

// Replicas stand one behind the other on the devices of the pool.
void set_places(TierRules& rules, const ServicePhase& phase, int per_node) {
  const int replicas = phase.instances * phase.plan.dp;
  for (int r = 0; r < replicas; ++r) {
    const int device = r * phase.plan.tp;
    rules.node_of.push_back(device / per_node);
    rules.rank_of.push_back(device % per_node / phase.plan.tp);
  }
  rules.nodes = rules.node_of.back() + 1;
}

// Keys and values of all layers, of the model that guesses too.
void set_block(TierRules& rules, const Scenario& scenario, const ServicePool& pool) {
  const ServingPlan& plan = pool.phase.plan;
  rules.block_tokens = static_cast<std::int32_t>(scenario.traffic.source->block_tokens());
  const double bytes = token_bytes(scenario.model, plan).once + token_bytes_of_drafter(pool).once;
  rules.block_bytes = bytes * rules.block_tokens;
  rules.pieces = rules.block_tokens / plan.block_tokens;
  rules.copies = static_cast<double>(plan.tp) / ranks_of_heads(scenario.model, plan);
}

void set_ways(TierRules& rules, const Cluster& cluster, const Pool& pool, int tp) {
  const FabricSpec& spec = cluster.fabric.spec();
  const FabricPool part = part_of_fabric(pool, spec);
  rules.host_link = part.host_rate * tp;
  rules.host_latency = part.copy_latency;
  rules.memory = part.host_memory_rate;
  rules.nic = part.nic_rate * std::max(1, tp / part.devices_per_nic);
  rules.replicas_on_nic = replicas_on_nic(cluster, tp);
  rules.fabric_latency = spec.host_latency + spec.hop_latency;
}

std::int64_t blocks_in(Bytes room, double block_bytes, std::string_view tier) {
  if (room.value == 0) return 0;
  const auto blocks = static_cast<std::int64_t>(room.value / block_bytes);
  if (blocks == 0)
    throw run_error(fmt::format("a block of {} does not fit in the {} of tier \"{}\"",
                                to_text(Bytes{block_bytes}), to_text(room), tier));
  return std::min(blocks, kv::BlockIndex::kUnbounded);
}

}  // namespace

double depth_cost(const Model& model, std::int64_t block_tokens) {
  // The mean of a token's context grows by a block from one block's length to three.
  const Flops first = forward_flops_per_token(model, block_tokens, true);
  const Flops third = forward_flops_per_token(model, 3 * block_tokens, true);
  return third / first - 1;
}

std::optional<TierRules> tier_rules(const Scenario& scenario, const TierPlan& plan, const ServicePool& pool,
                                    StepCost& cost) {
  if (!plan.on() || pool.phase.role == PoolRole::kDecode) return std::nullopt;
  TierRules rules;
  rules.plan = plan;
  const Cluster& cluster = *pool.job->scenario.cluster;
  const Pool& devices = cluster.pools.front();
  rules.plan.devices = plan.drives_of(devices.node);
  set_places(rules, pool.phase, devices.node.accelerators);
  set_block(rules, scenario, pool);
  set_ways(rules, cluster, devices, pool.phase.plan.tp);
  rules.dram_blocks = blocks_in(plan.dram, rules.block_bytes, "dram");
  rules.ssd_blocks = blocks_in(plan.ssd, rules.block_bytes, "ssd");
  const kv::TierLaw drive = kv::storage_law(plan.device);
  rules.ssd_read = drive.read;
  rules.ssd_write = drive.write;
  rules.layers = scenario.model.layers;
  rules.depth_cost = depth_cost(scenario.model, rules.block_tokens);
  rules.cost = &cost;
  rules.replicas = pool.phase.plan.dp;
  rules.token_budget = pool.phase.plan.token_budget;
  rules.absorbed_below = absorbed_below(pool);
  return rules;
}

}  // namespace moebius
