// What a serving system holds while it runs, for the files that carry it out: serving_system.cpp events and
// iterations, request_entry.cpp how requests come in, cache_handover.cpp how caches move to where decoding
// goes on, tiered_pools.cpp tiers below device memory.
#pragma once

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>

#include "hw/error.h"
#include "workloads/serving/separation/encoder_pool.h"
#include "workloads/serving/system/cache_port.h"
#include "workloads/serving/system/pool_loads.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {

struct ServiceEvent {
  enum class Kind : std::uint8_t {
    kArrival,
    kIteration,
    kTransfer,
    kTakenIn,
    kAnswered,
    kFetched,
    kEncoding,
    kEncoded
  };
  Time time;
  std::uint64_t order = 0;  // of equal times
  Kind kind = Kind::kIteration;
  std::int32_t index = 0;  // of the instance among all; of the request; of the encoder
  bool operator>(const ServiceEvent& other) const {
    return std::pair(time, order) > std::pair(other.time, other.order);
  }
};

struct LiveRequest {
  RequestMoments moments;
  std::int64_t tag = 0;
  Time prefilled = kForever;  // its prompt is computed
  Time preempted = kForever;  // when, as long as its prompt is not computed again
  std::int32_t images = 0;
  Location prefill, decode;
  std::vector<kv::BlockHash> blocks;  // of its prompt; the last one may be partial
  std::int64_t block_tokens = 0;
  Time forecast;        // of its first token, where it was admitted by one
  Time token_forecast;  // of each further one, where the router goes by forecasts
};

struct PoolState {
  std::vector<Instance> instances;
  // Of replicas, instance by instance; those that share a NIC have one, and so have lanes of one pipeline.
  std::vector<CachePort> ports;
  std::vector<std::deque<std::int32_t>> coming;  // requests whose caches are to come, by replica, in order
  std::vector<std::int32_t> coming_to;           // how many of them, by instance
  std::unique_ptr<PoolLoads> loads;
  std::int32_t first = 0;                        // its first instance among all
  std::int64_t preemptions = 0;
  double preempted = 0;  // seconds, see PoolFigures
  std::vector<ClassTokens> tokens;
  WanPipe in, out, caches;             // of its link to users
  std::unique_ptr<TieredCache> tiers;  // below its replicas; null: there are none
};

// What counts of promises: nobody waits for a first token that is there when a request comes.
std::vector<ServiceGoal> goals_of(const SystemRules& rules);

struct ServingSystem::State {
  State(const SystemRules& given, RequestFeed& source)
      : rules(given), feed(source), metrics(goals_of(given)), encoders(given.encoder) {
    CHECK(rules.pools.size() <= kMostPools, "a class names pools by bits");
    for (const PoolRules& pool : rules.pools) add_pool(pool);
    only_decodes = !takes_prompts;
    only_prefills = rules.pools.size() == 1 && rules.pools[0].role == PoolRole::kPrefill;
    CHECK(!only_decodes || rules.pools.size() == 1, "no pool takes prompts");
    add_tiers();
    router.emplace(rules.router, routed_pools(), rules.classes);
    intake = HostWorkers(rules.pools.front().instance.host.input_workers);
  }

  void add_pool(const PoolRules& pool) {
    const auto index = static_cast<std::int32_t>(pools.size());
    takes_prompts = takes_prompts || pool.role != PoolRole::kDecode;
    PoolState& state = pools.emplace_back();
    state.first = static_cast<std::int32_t>(places.size());
    state.instances.reserve(pool.instances);
    InstanceRules instance = pool.instance;
    instance.replica.hands_over = pool.role == PoolRole::kPrefill;
    for (std::int32_t i = 0; i < pool.instances; ++i) {
      if (pool.running > 0) instance.replica.max_running = of_lane(pool, i % pool.lanes);
      state.instances.emplace_back(instance, pool.costs.empty() ? pool.cost : pool.costs[i]);
      places.push_back({index, i, 0});
    }
    for (std::int32_t i = 0; i < pool.instances; ++i) {
      share_cache(state, pool.lanes, i);
      const std::int32_t first = i / pool.lanes * pool.lanes;
      if (i != first) state.instances[i].share_loop(state.instances[first]);
    }
    state.loads = std::make_unique<PoolLoads>(std::span(state.instances));
    state.coming_to.resize(pool.instances);
    state.coming.resize(static_cast<std::size_t>(pool.instances) * pool.instance.replicas);
    state.ports.resize(port_of(pool, pool.instances - 1, pool.instance.replicas - 1) + 1);
    state.tokens.resize(rules.classes.size());
  }

  // Lanes that share out what does not divide have one sequence more, the first of them.
  static std::int32_t of_lane(const PoolRules& pool, std::int32_t lane) {
    return pool.running / pool.lanes + (lane < pool.running % pool.lanes ? 1 : 0);
  }

  // Lanes of a pipeline are on the same devices: what comes to all of them passes one port.
  static std::size_t port_of(const PoolRules& pool, std::int32_t instance, std::int32_t replica) {
    const std::int32_t number = instance / pool.lanes * pool.instance.replicas + replica;
    return static_cast<std::size_t>(number / pool.replicas_on_port);
  }

  static void share_cache(PoolState& pool, int lanes, std::int32_t instance) {
    if (lanes == 1) return;
    for (int r = 0; r < pool.instances[instance].size(); ++r) {
      std::vector<Replica*> beside;
      for (std::int32_t i = instance / lanes * lanes; i < (instance / lanes + 1) * lanes; ++i)
        if (i != instance) beside.push_back(&pool.instances[i].replica(r));
      pool.instances[instance].replica(r).share_cache(std::move(beside));
    }
  }

  void add_tiers();
  std::int32_t number_of(const Location& at) const;
  void send_ahead(std::int32_t id);
  std::vector<RoutedPool> routed_pools();
  void arrive();
  bool accept(const RouteRequest& request, const std::optional<Location>& at);
  void begin_encoding();
  void end_encoding(std::int32_t encoder);
  void encoded(std::int32_t id);
  void adopt_cached(std::int32_t id);
  void start_waiting();
  std::uint64_t pools_with_room(std::int32_t input, std::int32_t output, std::int32_t service_class) const;
  RouteRequest route_of(std::int32_t id) const;
  bool forecasts_requests() const {
    return rules.router == RouterPolicy::kSlaAware || rules.admission.policy == AdmissionPolicy::kPredicted;
  }
  Time encoding_of(std::int32_t images) const;
  void show_tokens(const Location& at);
  ByteRate rate_of(const PoolRules& pool) const;
  ByteRate rate_between(const PoolRules& from, const PoolRules& to) const;
  double slower_layer(const PoolRules& from, const PoolRules& to) const;
  double bytes_of_token(const PoolRules& decoding) const;
  Time calls_of_transfer() const;
  HandOver hand_over_from(const PoolRules& pool) const;
  double cache_bytes(std::int32_t id) const;
  void carry_out(const ServiceEvent& event);
  void end_iteration(std::int32_t instance);
  void take_in(std::int32_t id);
  void enqueue(std::int32_t id);
  void end_preemption(std::int32_t id, int pool);
  void first_token(std::int32_t id, Time shown);
  Time way_back(const Location& at) const;
  void learn_first_token(std::int32_t id);
  void learn_per_token(std::int32_t id);
  void finish(std::int32_t id);
  void hand_over(std::int32_t id);
  void start_transfers(const Location& at);
  void start_transfer(std::int32_t id);
  Sequence decoding_of(std::int32_t id) const;
  Time sent_meanwhile(std::int32_t id, Time whole);
  void end_transfer(std::int32_t id);
  void kick(const Location& at);
  void kick_all_lanes(const Location& at);
  void note_decision(const Location& at);
  void tell_iteration(const Location& at, Time begin, Time end);
  void tell_moments(Time until);  // before anything happens then
  void post(Time time, ServiceEvent::Kind kind, std::int32_t index) {
    events.push({time, order++, kind, index});
  }
  Instance& instance(const Location& at) { return pools[at.pool].instances[at.instance]; }
  Replica& replica(const Location& at) { return instance(at).replica(at.replica); }
  CachePort& port(const Location& at) {
    return pools[at.pool].ports[port_of(pool_of(at), at.instance, at.replica)];
  }
  std::deque<std::int32_t>& coming(const Location& at) { return pools[at.pool].coming[number_of(at)]; }
  void add_coming(const Location& at, std::int32_t id) {
    coming(at).push_back(id);
    ++pools[at.pool].coming_to[at.instance];
  }
  std::int32_t take_slot();
  kv::Chain chain_of(std::int32_t id) const;
  const PoolRules& pool_of(const Location& at) const { return rules.pools[at.pool]; }

  SystemRules rules;
  RequestFeed& feed;
  Arrival arrival;  // the last one, whose memory is used again
  ServiceMetrics metrics;
  std::vector<PoolState> pools;
  std::vector<Location> places;  // of all instances
  std::optional<Router> router;
  bool takes_prompts = false;
  bool only_decodes = false, only_prefills = false;  // one pool, one phase
  std::vector<Location> starting;                    // where requests of this moment went
  std::vector<LiveRequest> live;
  std::vector<std::int32_t> free_slots;
  std::priority_queue<ServiceEvent, std::vector<ServiceEvent>, std::greater<>> events;
  std::uint64_t order = 0;
  Time now;
  StepOutcome outcome;
  std::vector<PoolMoment> moments;  // for the observer
  HostWorkers intake{1};
  double transferred = 0;
  ForecastFigures forecasts;
  EncoderPool encoders;
  std::vector<EncoderPool::Sent> sent;  // by the encoder that ended last
};

}  // namespace moebius
