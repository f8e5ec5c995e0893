#include "workloads/study/search/known_pools.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "workloads/study/search/serving_bounds.h"

namespace moebius {

const Scenario& KnownPools::scenario(std::int32_t variant) {
  const std::lock_guard lock(mutex_);
  const auto known = scenarios_.find(variant);
  if (known != scenarios_.end()) return known->second;
  return scenarios_.emplace(variant, space_.scenario_of(variant)).first->second;
}

const ServingDemand& KnownPools::demand(std::int32_t variant) {
  const Scenario& of = scenario(variant);
  const std::lock_guard lock(mutex_);
  const auto known = demands_.find(of.service.prefix_cache);
  if (known != demands_.end()) return known->second;
  return demands_.emplace(of.service.prefix_cache, demand_of(of, request_.requests)).first->second;
}

ServicePhase KnownPools::limited(const ServingGroup& group, std::size_t seat,
                                 const SeatLimits& limits) const {
  ServicePhase phase = space_.phase(group, seat);
  phase.plan.max_batch = static_cast<int>(limits.max_batch);
  phase.plan.token_budget = limits.token_budget;
  return phase;
}

// Of all bundles that with the largest iteration, or else the smallest one that there is: what does not fit
// with that fits with none. What is set aside for each sequence leaves pages the most room with the fewest.
std::optional<PoolRoom> KnownPools::room(const ServingGroup& group, std::size_t seat, std::int32_t bundle) {
  SeatLimits limits = space_.limits(group, seat, bundle);
  if (bundle != ServingSpace::kAllBundles) return room_with(group, seat, limits);
  const int most = static_cast<int>(limits.max_batch);
  limits.max_batch = space_.least_batch(group, seat);
  std::optional<PoolRoom> room = room_with(group, seat, limits);
  limits.token_budget = 1;
  if (!room) room = room_with(group, seat, limits);
  if (room) room->phase.plan.max_batch = most;
  return room;
}

std::optional<PoolRoom> KnownPools::room_with(const ServingGroup& group, std::size_t seat,
                                              const SeatLimits& limits) {
  const RoomKey key{space_.variants()[group.variant].seat_ids[seat], group.options[seat], limits};
  const Scenario& of = scenario(group.variant);
  {
    const std::lock_guard lock(mutex_);
    const auto known = rooms_.find(key);
    if (known != rooms_.end()) return known->second;
  }
  const std::optional<PoolRoom> room = room_of(of, limited(group, seat, limits));
  const std::lock_guard lock(mutex_);
  return rooms_.emplace(key, room).first->second;
}

PoolRates KnownPools::timed(const ServingGroup& group, std::size_t seat, std::int32_t bundle,
                            const PoolRoom& room) {
  const SeatLimits limits = space_.limits(group, seat, bundle);
  const RateKey rate_key{space_.variants()[group.variant].seat_ids[seat], group.options[seat], limits};
  const Scenario& of = scenario(group.variant);
  const ServingDemand& asked = demand(group.variant);
  {
    const std::lock_guard lock(mutex_);
    const auto known = rates_.find(rate_key);
    if (known != rates_.end()) return known->second;
  }
  ServicePhase phase = limited(group, seat, limits);
  phase.plan.token_budget = room.phase.plan.token_budget;
  const SurfaceStore::Keys keys{{space_.pool_name(group, seat), key(group, seat, phase.plan)}};
  StepTimings timings = store_.known(keys);
  const PoolRates rates =
      timed_rates(of, phase, limits, room, asked, promised_tpot(of), request_.rough, timings);
  store_.add(keys, timings);
  const std::lock_guard lock(mutex_);
  return rates_.emplace(rate_key, rates).first->second;
}

std::optional<KnownPools::Pools> KnownPools::of(const ServingGroup& group, std::int32_t bundle, bool timed) {
  Pools pools{{}, std::numeric_limits<std::int64_t>::max()};
  const std::size_t seats = space_.variants()[group.variant].seat_ids.size();
  for (std::size_t s = 0; s < seats; ++s) {
    const std::optional<PoolRoom> room = this->room(group, s, bundle);
    if (!room) return std::nullopt;
    pools.cache_tokens = std::min(pools.cache_tokens, room->cache_tokens);
    pools.rates.push_back(timed ? this->timed(group, s, bundle, *room) : rates_by_peak(*room));
    pools.rates.back().mixed = space_.limits(group, s, bundle).mixed;
  }
  return pools;
}

// Buffers are as large as the largest iteration.
std::string KnownPools::key(const ServingGroup& group, std::size_t seat, const ServingPlan& plan) const {
  return fmt::format("{} {} {}", space_.variants()[group.variant].seat_ids[seat], group.options[seat],
                     plan.token_budget);
}

}  // namespace moebius
