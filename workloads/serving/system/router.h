// To which instance of which pool a request goes, and to which of its replicas.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/serving/system/forecast.h"
#include "workloads/serving/system/instance.h"
#include "workloads/serving/system/request_class.h"

namespace moebius {

enum class PoolRole : std::uint8_t { kBoth, kPrefill, kDecode };

enum class RouterPolicy : std::uint8_t {
  kRoundRobin,
  kLeastRequests,
  kLeastTokens,  // of prompts to compute and of contexts to read
  // Least tokens, of which those of the prompt that a replica has in its cache count as not there: the cost
  // of NVIDIA Dynamo's router with its weight of 1, prefill blocks that are not cached plus blocks in use.
  kKvAware,
  // Where the request costs least, of those that are forecast to keep what its class is promised; where none
  // does, which misses by the smallest factor.
  kSlaAware,
};

struct Location {
  std::int32_t pool = -1, instance = 0, replica = 0;
};

// A pool as the router sees it.
struct RoutedPool {
  PoolRole role = PoolRole::kBoth;
  std::vector<Instance>* instances = nullptr;  // outlive the router
  InstanceRules rules;
  StepCost* cost = nullptr;
  double usd_per_second = 0;  // of an instance; all zero: prices are not known, and device time counts
  Time there_and_back;        // of the link to it
};

struct RouteRequest {
  std::int64_t input = 0;
  kv::Chain chain = {};  // whole blocks of its prompt
  std::int64_t block_tokens = 0;
  const RequestClass* of = nullptr;
  std::uint64_t pools = ~std::uint64_t{0};  // that have room for it, by bit
  Time waited = {};                         // since it came
};

class Router {
 public:
  Router(RouterPolicy policy, std::vector<RoutedPool> pools);

  // For its prompt, of pools that take prompts; for decoding, of those that do that alone. Nothing: no pool
  // may have it.
  std::optional<Location> for_prompt(const RouteRequest& request, Time now);
  std::optional<Location> for_decoding(const RouteRequest& request, Time now);

  // Of a request at a place where it could go; first token and, where it goes on decoding there, the others.
  Forecast forecast(const Location& at, const RouteRequest& request, Time now);
  // The least time per token that any pool that only decodes is forecast to give it; nothing: there is none.
  std::optional<Time> decoding_elsewhere(const RouteRequest& request, Time now);

  // A request has come, or has all its tokens: forecasts are made from such means.
  void arrived(Time now);
  void finished(std::int64_t output);

 private:
  struct Seat {
    std::int32_t pool = 0, instance = 0;
  };
  struct Side {  // of one phase
    std::vector<Seat> seats;
    int turn = 0;
  };
  std::optional<Location> choose(Side& side, const RouteRequest& request, Time now);
  std::optional<int> next_in_turn(Side& side, const RouteRequest& request) const;
  int least(const Side& side, const RouteRequest& request, int from, ReplicaBalance by) const;
  Location least_with_cache(const Side& side, const RouteRequest& request, int from) const;
  Location cheapest(const Side& side, const RouteRequest& request, int from, Time now);
  int best_replica(const Seat& seat, const RouteRequest& request) const;
  std::int64_t tokens_at(const Seat& seat, int replica, const RouteRequest& request) const;
  bool may(const Seat& seat, const RouteRequest& request) const;
  std::int64_t hit_tokens(const Seat& seat, int replica, const RouteRequest& request) const;
  Instance& instance(const Seat& seat) const { return (*pools_[seat.pool].instances)[seat.instance]; }
  double mean_output() const;

  RouterPolicy policy_;
  std::vector<RoutedPool> pools_;
  std::vector<Forecaster> forecasters_;  // by pool
  Side prompts_, decoding_;
  bool priced_ = true;
  Time began_ = kForever;
  std::int64_t finished_ = 0, output_ = 0;
};

}  // namespace moebius
