// To which instance of which pool a request goes, and to which of its replicas.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "workloads/serving/system/forecast.h"
#include "workloads/serving/system/forecast_margin.h"
#include "workloads/serving/system/pool_loads.h"
#include "workloads/serving/system/request_class.h"
#include "workloads/serving/system/service_policies.h"

namespace moebius {

struct Location {
  std::int32_t pool = -1, instance = 0, replica = 0;
};

// From the end of a prompt until its cache stands where decoding goes on, where nothing else is on its way.
struct HandOver {
  double seconds = 0, per_token = 0;  // of the prompt
};

// A pool as the router sees it.
struct RoutedPool {
  PoolRole role = PoolRole::kBoth;
  std::vector<Instance>* instances = nullptr;  // outlive the router
  InstanceRules rules;
  double usd_per_second = 0;  // of an instance; all zero: prices are not known, and device time counts
  Time there_and_back;        // of the link to it
  HandOver hand_over = {};    // of prompts whose first token users get behind it
  PoolLoads* loads = nullptr;  // of those instances, outlive the router; null: they are asked one by one
};

struct RouteRequest {
  std::int64_t input = 0;
  kv::Chain chain = {};  // whole blocks of its prompt
  std::int64_t block_tokens = 0;
  const RequestClass* of = nullptr;
  std::uint64_t pools = ~std::uint64_t{0};  // that have room for it, by bit
  Time waited = {};                         // since it came
  std::int32_t images = 0;                  // of its prompt
  Time encoding = {};  // until they are there, from encoders that stand apart; 0: its replica encodes them
};

// What a sum that only grows has grown by lately, a second: over the last one to two windows.
class RecentRate {
 public:
  double at(Time now, double sum);

 private:
  static constexpr Time kWindow{10'000'000'000};
  Time since_, marked_;
  double before_ = 0, mark_ = 0;  // the sum at these times
};

class Router {
 public:
  // `classes` outlive the router.
  Router(RouterPolicy policy, std::vector<RoutedPool> pools, const std::vector<RequestClass>& classes);

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
  // A request goes to where it was routed: for its prompt, and on to where it decodes.
  void routed(const Location& at, const RouteRequest& request);
  void decodes(const Location& at, const RequestClass& of);
  void left(const Location& at, const RequestClass& of) { --of_class(at, of); }
  void generated(std::int64_t tokens) { generated_ += tokens; }
  void finished() { ++finished_; }
  // What came of forecasts: the margins of later ones.
  void first_token(std::int32_t pool, const RequestClass& of, Time came, Time forecast, Time now);
  void per_token(std::int32_t pool, const RequestClass& of, Time came, Time forecast, Time now);

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
  std::int64_t load(const Seat& seat, ReplicaBalance by) const {
    const RoutedPool& pool = pools_[seat.pool];
    return pool.loads != nullptr ? pool.loads->of(seat.instance, by) : instance(seat).load(by);
  }
  Instance& instance(const Seat& seat) const { return (*pools_[seat.pool].instances)[seat.instance]; }
  double mean_output() const;
  double arriving(std::int32_t pool, Time now);
  std::int64_t& of_class(const Location& at, const RequestClass& of);
  double prompt_share(const Location& at, Time now);
  double joining(const Location& at, Time now);
  // What comes of promises' times over what is promised; 1 and below keeps them.
  struct Miss {
    double surely = 0;    // if forecasts fall short as they did
    double forecast = 0;  // as they are
    bool breaks = false;  // those of a class that is there would be kept if the request went elsewhere
    double given_up = 0;  // above 1: those of a class that is there are not, wherever it goes
  };
  Miss miss(const Seat& seat, const RouteRequest& request, const Forecast& found, Time now);
  struct Place {  // where a request may go
    Location at;
    Forecast found;
    Miss miss;
    Time wait;  // until something comes of it there
  };
  void find_places(const Side& side, const RouteRequest& request, int from, Time now);
  Time longest_queue(Time now) const;
  using Order = std::tuple<int, double, double, double, double, double, std::int64_t>;  // the least is taken
  Order order_of(const Place& place, const RouteRequest& request, Time longest) const;
  struct Margins {
    ForecastMargin first_token, per_token;
  };
  Margins& margins(std::int32_t pool, const RequestClass& of) {
    return margins_[pool * classes_.size() + (&of - classes_.data())];
  }

  RouterPolicy policy_;
  std::vector<RoutedPool> pools_;
  std::vector<Forecaster> forecasters_;  // by pool
  Side prompts_, decoding_;
  bool priced_ = true;
  bool forecasts_ = false;  // somebody asked for one
  Time began_ = kForever;
  std::int64_t finished_ = 0, generated_ = 0;  // requests, tokens
  std::vector<std::int64_t> routed_;           // tokens of prompts, beside cached ones, by pool
  std::vector<RecentRate> arriving_;           // the same, lately
  const std::vector<RequestClass>& classes_;
  std::vector<std::size_t> first_;                   // of a pool's instances, among all
  std::vector<std::vector<std::int64_t>> by_class_;  // requests that decode or will, by instance
  std::vector<RecentRate> prompt_time_;              // that an instance spends on prompts, a second
  std::vector<std::int64_t> joined_;                 // requests that were to decode, by instance
  std::vector<RecentRate> joining_;                  // the same, lately
  std::vector<Margins> margins_;                     // by pool and class
  std::vector<Place> places_;                        // of the request that is routed
};

}  // namespace moebius
