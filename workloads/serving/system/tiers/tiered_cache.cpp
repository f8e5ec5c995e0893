#include "workloads/serving/system/tiers/tiered_cache.h"

#include <algorithm>

#include "workloads/serving/system/tiers/tier_state.h"

namespace moebius {

struct TieredCache::State : TierState {
  using TierState::TierState;
};

// Of tiers of another pool; peaks are of the fullest node of all.
void TierFigures::add(const TierFigures& other) {
  for (std::int64_t TierFigures::*count :
       {&TierFigures::asked, &TierFigures::hit_device, &TierFigures::hit_dram, &TierFigures::hit_ssd,
        &TierFigures::hit_remote_dram, &TierFigures::hit_remote_ssd, &TierFigures::missed,
        &TierFigures::recomputed, &TierFigures::stale, &TierFigures::index_lookups,
        &TierFigures::index_updates, &TierFigures::dram_capacity, &TierFigures::dram_evicted,
        &TierFigures::ssd_capacity, &TierFigures::ssd_evicted, &TierFigures::ssd_refused,
        &TierFigures::prefetched, &TierFigures::prefetch_used, &TierFigures::prefetch_wasted,
        &TierFigures::prefetched_ahead})
    this->*count += other.*count;
  for (double TierFigures::*sum :
       {&TierFigures::to_device_bytes, &TierFigures::from_device_bytes, &TierFigures::ssd_read_bytes,
        &TierFigures::ssd_written_bytes, &TierFigures::network_bytes, &TierFigures::index_bytes,
        &TierFigures::saved_s, &TierFigures::stalled_s})
    this->*sum += other.*sum;
  dram_peak = std::max(dram_peak, other.dram_peak);
  ssd_peak = std::max(ssd_peak, other.ssd_peak);
}

TieredCache::TieredCache(const TierRules& rules) : state_(std::make_unique<State>(rules)) {}
TieredCache::~TieredCache() = default;

TiersBelow& TieredCache::below(std::int32_t replica) {
  return state_->views[replica];
}

Time TieredCache::arrived(std::int32_t replica, const PromptAsk& ask) {
  return state_->arrived(replica, ask);
}

BlocksBelow TieredCache::find(std::int32_t replica, kv::Chain chain, std::int64_t there, Time now) {
  PromptAsk ask;
  ask.chain = chain;
  ask.there = there;
  ask.now = now;
  state_->find(replica, ask, static_cast<std::int64_t>(chain.size()));
  const BlockLoad load = state_->load_of(static_cast<std::int64_t>(state_->found.size()));
  return {load.dram, load.ssd, load.remote};
}

Time TieredCache::sends_from(std::int32_t replica) const {
  return state_->nic(replica).sends.free();
}

void TieredCache::sent(std::int32_t replica, Time end) {
  state_->nic(replica).sends.hold_until(end);
}

TierFigures TieredCache::figures() const {
  constexpr double kUpdateBytes = 16;  // a hash and a place, told to every other node; each looks up its own
  TierFigures figures = state_->figures;
  figures.index_lookups = state_->index.lookups();
  figures.index_updates = state_->index.updates();
  figures.index_bytes = static_cast<double>(figures.index_updates) * kUpdateBytes * (state_->rules.nodes - 1);
  for (const NodeTiers& node : state_->nodes) {
    figures.dram_capacity += node.dram.capacity();
    figures.ssd_capacity += node.ssd.capacity();
    figures.dram_peak = std::max(figures.dram_peak, node.dram.peak());
    figures.ssd_peak = std::max(figures.ssd_peak, node.ssd.peak());
    figures.dram_evicted += node.dram.evicted();
    figures.ssd_evicted += node.ssd.evicted();
    figures.prefetch_wasted += node.dram.never_used();
  }
  return figures;
}

}  // namespace moebius
