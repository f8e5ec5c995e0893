#include "workloads/serving/system/tiers/node_tiers.h"

namespace moebius {
namespace {

std::unique_ptr<kv::Eviction> eviction_of(const TierRules& rules, std::int64_t blocks) {
  return kv::make_eviction(rules.plan.eviction, {.capacity = blocks, .depth_cost = rules.depth_cost});
}

// Of a drive that always has `depth` pieces: it is not faster than its rate, its operations a second, or as
// many pieces as it has at a time in the time that one takes (tier_law.h).
double piece_seconds(const kv::ServiceLaw& law, double bytes, int depth) {
  const double work = law.work(bytes);
  return std::max(work, (law.latency.seconds() + work) / depth);
}

}  // namespace

NodeTiers::NodeTiers(const TierRules& rules)
    : dram(rules.dram_blocks, eviction_of(rules, rules.dram_blocks)),
      ssd(rules.ssd_blocks, eviction_of(rules, rules.ssd_blocks)),
      memory(rules.plan.prefetch_budget),
      drives(rules.plan.prefetch_budget) {}

ReplicaWays::ReplicaWays(const TierRules& rules)
    : to_device(rules.plan.prefetch_budget), from_device(rules.plan.prefetch_budget) {}

NicWays::NicWays(const TierRules& rules)
    : sends(rules.plan.prefetch_budget), takes_in(rules.plan.prefetch_budget) {}

WayWork::WayWork(const TierRules& rules) {
  const Bytes block{rules.block_bytes};
  host_link = block * rules.copies / rules.host_link;
  memory = block / rules.memory;
  nic = rules.nic.value > 0 ? block / rules.nic : 0;
  if (rules.ssd_blocks == 0) return;
  const double piece = rules.block_bytes / rules.pieces;
  least_read = piece_seconds(rules.ssd_read, piece, rules.plan.queue_depth);
  least_write = piece_seconds(rules.ssd_write, piece, rules.plan.queue_depth);
  ssd_read = least_read * rules.pieces / rules.plan.devices;
  ssd_write = least_write * rules.pieces / rules.plan.devices;
}

}  // namespace moebius
