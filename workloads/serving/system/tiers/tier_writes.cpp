#include <algorithm>

#include "workloads/serving/system/tiers/tier_state.h"

namespace moebius {

void TierState::tell(std::int32_t node, LowerTier tier, kv::BlockHash hash, Time when, bool there) {
  if (!rules.plan.cluster) return;
  there ? index.add(hash, {node, tier}, when) : index.remove(hash, {node, tier}, when);
}

// Into host memory; what has to go for it goes to the drives, as the policy says.
void TierState::put_dram(std::int32_t node, const kv::EvictedBlock& block, Time ready, bool ahead, Time now) {
  TierStore& dram = nodes[node].dram;
  if (dram.find(block.hash) >= 0 || dram.insert(block, ready, ahead) < 0) return;
  tell(node, LowerTier::kDram, block.hash, ready, true);
  for (const kv::EvictedBlock& gone : dram.gone()) {
    figures.prefetch_wasted += dram.gone_ahead() ? 1 : 0;
    tell(node, LowerTier::kDram, gone.hash, std::max(now, dram.gone_ready()), false);
    if (rules.plan.write != WritePolicy::kThrough)
      put_ssd(node, gone, std::max(now, dram.gone_ready()), true);
  }
}

void TierState::put_ssd(std::int32_t node, const kv::EvictedBlock& block, Time from, bool read_memory) {
  NodeTiers& at = nodes[node];
  if (rules.ssd_blocks == 0 || at.ssd.find(block.hash) >= 0) return;
  if (rules.plan.ssd_second_use && block.uses < 2) return;
  // A queue that is full takes no more.
  if (at.drives.free() > from + time_from_seconds(work.least_write * rules.plan.queue_depth)) {
    ++figures.ssd_refused;
    return;
  }
  Time end = at.drives.demand(from, work.writes(1));
  if (read_memory) end = std::max(end, at.memory.demand(from, work.memory));
  const Time ready = end + rules.ssd_write.latency;
  figures.ssd_written_bytes += rules.block_bytes;
  if (at.ssd.insert(block, ready, false) < 0) return;
  tell(node, LowerTier::kSsd, block.hash, ready, true);
  for (const kv::EvictedBlock& gone : at.ssd.gone())
    tell(node, LowerTier::kSsd, gone.hash, std::max(from, at.ssd.gone_ready()), false);
}

// From device memory to the first tier below it.
Time TierState::copy_down(std::int32_t replica, std::span<const kv::EvictedBlock> blocks, Time now) {
  const std::int32_t home = rules.node_of[replica];
  const auto count = static_cast<double>(blocks.size());
  const double once = work.host_link / rules.copies;  // one rank's copy is enough
  Time end = ways[replica].from_device.demand(now, count * once);
  end = std::max(end, nodes[home].memory.demand(now, count * work.memory)) + rules.host_latency;
  figures.from_device_bytes += count * rules.block_bytes;
  for (const kv::EvictedBlock& block : blocks) {
    if (rules.dram_blocks > 0) put_dram(home, block, end, false, now);
    if (rules.dram_blocks == 0 || rules.plan.write == WritePolicy::kThrough) put_ssd(home, block, end, true);
  }
  return end;
}

Time TierState::take_in(std::int32_t replica, std::span<const kv::EvictedBlock> blocks, Time now) {
  if (rules.plan.write != WritePolicy::kOnEviction) return now;
  fresh.clear();
  const NodeTiers& node = node_of(replica);
  for (const kv::EvictedBlock& block : blocks) {
    const TierStore& store = rules.dram_blocks > 0 ? node.dram : node.ssd;
    if (store.find(block.hash) < 0) fresh.push_back(block);
  }
  return fresh.empty() ? now : copy_down(replica, fresh, now);
}

void TierState::computed(std::int32_t replica, kv::Chain chain, std::int64_t reused, Time now) {
  if (rules.plan.write == WritePolicy::kOnEviction) return;
  const bool again = rules.plan.write == WritePolicy::kSelective;
  const auto size = static_cast<std::int64_t>(chain.size());
  const NodeTiers& node = node_of(replica);
  const TierStore& store = rules.dram_blocks > 0 ? node.dram : node.ssd;
  fresh.clear();
  for (std::int64_t i = again ? 0 : reused; i < (again ? reused : size); ++i)
    if (store.find(chain[i]) < 0)
      fresh.push_back({chain[i], chain[i == 0 ? 0 : i - 1], static_cast<std::int32_t>(i), again ? 2 : 1});
  // The last one first, so that the first ones are used last.
  std::reverse(fresh.begin(), fresh.end());
  if (!fresh.empty()) copy_down(replica, fresh, now);
}

}  // namespace moebius
