// Tiers below the device memory of pools that take prompts.
#include "workloads/serving/system/serving_state.h"

namespace moebius {

void ServingSystem::State::add_tiers() {
  for (std::size_t p = 0; p < pools.size(); ++p) {
    if (!rules.pools[p].tiers) continue;
    pools[p].tiers = std::make_unique<TieredCache>(*rules.pools[p].tiers);
    std::int32_t number = 0;
    for (Instance& instance : pools[p].instances)
      for (int i = 0; i < instance.size(); ++i)
        instance.replica(i).use_tiers(pools[p].tiers->below(number++));
  }
}

// Among all replicas of its pool.
std::int32_t ServingSystem::State::number_of(const Location& at) const {
  return at.instance * pool_of(at).instance.replicas + at.replica;
}

// What its prompt needs and is far away comes nearer while it waits.
void ServingSystem::State::send_ahead(std::int32_t id) {
  const Location& at = live[id].prefill;
  TieredCache* const tiers = pools[at.pool].tiers.get();
  const kv::Chain chain = chain_of(id);
  if (tiers == nullptr || chain.empty()) return;
  const Time start = tiers->arrived(
      number_of(at), {id, live[id].moments.input, chain, replica(at).cached_blocks(chain), now});
  if (start > now) post(start, ServiceEvent::Kind::kFetched, pools[at.pool].first + at.instance);
}

std::optional<TierFigures> ServingSystem::tiers() const {
  std::optional<TierFigures> figures;
  for (const PoolState& pool : state_->pools) {
    if (pool.tiers == nullptr) continue;
    TierFigures of = pool.tiers->figures();
    for (const Instance& instance : pool.instances) of.stalled_s += instance.totals().stalled.seconds();
    if (figures) of.add(*figures);
    figures = of;
  }
  return figures;
}

}  // namespace moebius
