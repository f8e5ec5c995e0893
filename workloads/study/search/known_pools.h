// What is known of the pools of a space's plans: whether they fit, and what they can do at best. Each is
// found out once, whatever plans share it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "workloads/study/search/pool_rates.h"
#include "workloads/study/search/search_request.h"
#include "workloads/study/search/serving_space.h"
#include "workloads/study/search/surface_store.h"

namespace moebius {

class KnownPools {
 public:
  // All outlive this. Iterations are timed at the rough clock and kept in `store`.
  KnownPools(const ServingSpace& space, const SearchRequest& request, SurfaceStore& store)
      : space_(space), request_(request), store_(store) {}

  // All by several threads; `bundle` may be ServingSpace::kAllBundles.
  struct Pools {
    std::vector<PoolRates> rates;
    std::int64_t cache_tokens = 0;  // of the smallest cache of a replica
  };
  // Nothing where one of them does not fit.
  std::optional<Pools> of(const ServingGroup& group, std::int32_t bundle, bool timed);

  const Scenario& scenario(std::int32_t variant);
  const ServingDemand& demand(std::int32_t variant);

 private:
  using RoomKey = std::tuple<std::int32_t, std::int32_t, SeatLimits>;  // seat, option
  using RateKey = std::tuple<std::int32_t, std::int32_t, SeatLimits>;
  ServicePhase limited(const ServingGroup& group, std::size_t seat, const SeatLimits& limits) const;
  std::optional<PoolRoom> room(const ServingGroup& group, std::size_t seat, std::int32_t bundle);
  std::optional<PoolRoom> room_with(const ServingGroup& group, std::size_t seat, const SeatLimits& limits);
  PoolRates timed(const ServingGroup& group, std::size_t seat, std::int32_t bundle, const PoolRoom& room);
  std::string key(const ServingGroup& group, std::size_t seat, const ServingPlan& plan) const;

  const ServingSpace& space_;
  const SearchRequest& request_;
  SurfaceStore& store_;
  std::mutex mutex_;  // of what follows
  std::map<RoomKey, std::optional<PoolRoom>> rooms_;
  std::map<RateKey, PoolRates> rates_;
  std::map<std::int32_t, Scenario> scenarios_;  // by variant
  std::map<bool, ServingDemand> demands_;       // by whether caches are shared
};

}  // namespace moebius
