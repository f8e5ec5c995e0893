#include "workloads/serving/system/serving_system.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

struct Location {
  std::int32_t pool = -1, instance = 0, replica = 0;
};

struct Event {
  enum class Kind : std::uint8_t { kIteration, kTransfer, kTakenIn, kAnswered };
  Time time;
  std::uint64_t order = 0;  // of equal times
  Kind kind = Kind::kIteration;
  std::int32_t index = 0;  // of the instance among all; of the request
  bool operator>(const Event& other) const {
    return std::pair(time, order) > std::pair(other.time, other.order);
  }
};

struct LiveRequest {
  RequestMoments moments;
  std::int64_t tag = 0;
  Time prefilled = kForever;  // its prompt is computed
  Location prefill, decode;
  std::vector<kv::BlockHash> blocks;  // of its prompt; the last one may be partial
};

// A replica's port: what it sends and takes in goes one after the other.
struct Port {
  Time free;
  std::deque<std::int32_t> waiting;  // requests whose caches are to come, in order
};

struct PoolState {
  std::vector<Instance> instances;
  std::vector<Port> ports;  // of replicas, instance by instance
  std::int32_t first = 0;   // its first instance among all
  int turn = 0;
  std::int64_t preemptions = 0;
};

}  // namespace

struct ServingSystem::State {
  State(const SystemRules& given, RequestFeed& source) : rules(given), feed(source), metrics(given.goals) {
    for (const PoolRules& pool : rules.pools) add_pool(pool);
    CHECK(entry >= 0, "no pool takes prompts");
    intake = HostWorkers(rules.pools[entry].instance.host.input_workers);
  }

  void add_pool(const PoolRules& pool) {
    const auto index = static_cast<std::int32_t>(pools.size());
    if (pool.role != PoolRole::kDecode) entry = index;
    if (pool.role == PoolRole::kDecode) decoder = index;
    PoolState& state = pools.emplace_back();
    state.first = static_cast<std::int32_t>(places.size());
    state.instances.reserve(pool.instances);
    InstanceRules instance = pool.instance;
    instance.replica.hands_over = pool.role == PoolRole::kPrefill;
    for (std::int32_t i = 0; i < pool.instances; ++i) {
      state.instances.emplace_back(instance, *pool.cost);
      places.push_back({index, i, 0});
    }
    state.ports.resize(static_cast<std::size_t>(pool.instances) * pool.instance.replicas);
  }

  void arrive();
  void carry_out(const Event& event);
  void end_iteration(std::int32_t instance);
  void first_token(std::int32_t id, Time shown);
  void take_in(std::int32_t id, std::int64_t images);
  void enqueue(std::int32_t id);
  void finish(std::int32_t id);
  void hand_over(std::int32_t id);
  void start_transfers(const Location& at);
  void start_transfer(std::int32_t id);
  void end_transfer(std::int32_t id);
  void kick(const Location& at);
  Location choose(std::int32_t pool);
  int choose_instance(PoolState& pool);
  void post(Time time, Event::Kind kind, std::int32_t index) { events.push({time, order++, kind, index}); }
  Instance& instance(const Location& at) { return pools[at.pool].instances[at.instance]; }
  Replica& replica(const Location& at) { return instance(at).replica(at.replica); }
  Port& port(const Location& at) {
    return pools[at.pool].ports[static_cast<std::size_t>(at.instance) * instance(at).size() + at.replica];
  }
  std::int32_t take_slot();
  kv::Chain chain_of(std::int32_t id) const;

  SystemRules rules;
  RequestFeed& feed;
  Arrival arrival;  // the last one, whose memory is used again
  ServiceMetrics metrics;
  std::vector<PoolState> pools;
  std::vector<Location> places;  // of all instances
  std::int32_t entry = -1, decoder = -1;
  std::vector<LiveRequest> live;
  std::vector<std::int32_t> free_slots;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::uint64_t order = 0;
  Time now, first_arrival = kForever, last_token;
  StepOutcome outcome;
  HostWorkers intake{1};
  double transferred = 0;
};

std::int32_t ServingSystem::State::take_slot() {
  if (free_slots.empty()) {
    live.emplace_back();
    return static_cast<std::int32_t>(live.size()) - 1;
  }
  const std::int32_t slot = free_slots.back();
  free_slots.pop_back();
  return slot;
}

// Whole blocks alone are shared: the rest of the last one is its own.
kv::Chain ServingSystem::State::chain_of(std::int32_t id) const {
  const std::int64_t tokens = arrival.request.block_tokens;
  if (tokens == 0 || tokens != rules.pools[entry].instance.replica.shared_tokens) return {};
  const auto whole = static_cast<std::size_t>(live[id].moments.input / tokens);
  return kv::Chain(live[id].blocks).first(std::min(whole, live[id].blocks.size()));
}

int ServingSystem::State::choose_instance(PoolState& pool) {
  const int count = static_cast<int>(pool.instances.size()), turn = pool.turn;
  pool.turn = (turn + 1) % count;
  if (rules.router == RouterPolicy::kRoundRobin) return turn;
  const ReplicaBalance by =
      rules.router == RouterPolicy::kLeastTokens ? ReplicaBalance::kTokens : ReplicaBalance::kRequests;
  int best = turn;
  std::int64_t least = pool.instances[turn].load(by);
  for (int i = 1; i < count && least > 0; ++i) {
    const int at = (turn + i) % count;
    const std::int64_t load = pool.instances[at].load(by);
    if (load < least) best = at, least = load;
  }
  return best;
}

Location ServingSystem::State::choose(std::int32_t pool) {
  const int instance = choose_instance(pools[pool]);
  return {pool, instance, pools[pool].instances[instance].choose()};
}

void ServingSystem::State::arrive() {
  feed.take(arrival);
  now = std::max(now, arrival.request.arrival);
  const auto input = static_cast<std::int32_t>(arrival.request.input_tokens);
  // A prompt that asks for nothing still ends in a token.
  const auto output = static_cast<std::int32_t>(std::max<std::int64_t>(1, arrival.request.output_tokens));
  first_arrival = std::min(first_arrival, now);
  metrics.submitted(arrival.service_class);
  const Location at = choose(entry);
  const std::int32_t target = decoder < 0 ? entry : decoder;
  if (!replica(at).fits(input, output) || !pools[target].instances.front().replica(0).fits(input, output)) {
    metrics.rejected(arrival.service_class);
    feed.answered(arrival.tag, now);
    return;
  }
  const std::int32_t id = take_slot();
  RequestMoments moments;
  moments.arrival = now;
  moments.input = input;
  moments.output = output;
  moments.service_class = arrival.service_class;
  live[id].moments = moments;
  live[id].tag = arrival.tag;
  live[id].prefill = live[id].decode = at;
  live[id].prefilled = kForever;
  std::swap(live[id].blocks, arrival.request.blocks);
  take_in(id, arrival.request.images);
}

// Text becomes tokens: by workers, or by the loop of the engine that it goes to.
void ServingSystem::State::take_in(std::int32_t id, std::int64_t images) {
  const HostCosts& host = rules.pools[entry].instance.host;
  const Time work = host.of_request(live[id].moments.input, images);
  if (host.parallel && work.ns > 0) return post(intake.serve(now, work), Event::Kind::kTakenIn, id);
  instance(live[id].prefill).take_in(work);
  enqueue(id);
}

void ServingSystem::State::enqueue(std::int32_t id) {
  const RequestMoments& moments = live[id].moments;
  replica(live[id].prefill).enqueue({id, moments.input, moments.output, chain_of(id)});
  kick(live[id].prefill);
}

void ServingSystem::State::kick(const Location& at) {
  Instance& what = instance(at);
  const std::optional<Time> end = what.begin(now);
  if (!end) return;
  for (int i = 0; i < what.size(); ++i) {
    for (const std::int32_t id : what.replica(i).admitted())
      live[id].moments.admitted = std::min(live[id].moments.admitted, now);
    pools[at.pool].preemptions += static_cast<std::int64_t>(what.replica(i).preempted().size());
  }
  post(*end, Event::Kind::kIteration, pools[at.pool].first + at.instance);
}

void ServingSystem::State::carry_out(const Event& event) {
  now = event.time;
  switch (event.kind) {
    case Event::Kind::kIteration:
      end_iteration(event.index);
      break;
    case Event::Kind::kTransfer:
      end_transfer(event.index);
      break;
    case Event::Kind::kTakenIn:
      enqueue(event.index);
      break;
    case Event::Kind::kAnswered:
      finish(event.index);
      break;
  }
}

void ServingSystem::State::end_iteration(std::int32_t index) {
  const Location at = places[index];
  outcome.clear();
  instance(at).end(now, outcome);
  metrics.tokens(outcome.gaps);
  const Time shown = instance(at).shown();
  for (const std::int32_t id : outcome.prefilled) first_token(id, shown);
  for (const std::int32_t id : outcome.finished) {
    if (shown > now) {
      post(shown, Event::Kind::kAnswered, id);
    } else {
      finish(id);
    }
  }
  if (at.pool == decoder)
    for (std::int32_t i = 0; i < instance(at).size(); ++i) start_transfers({at.pool, at.instance, i});
  kick(at);
}

void ServingSystem::State::first_token(std::int32_t id, Time shown) {
  LiveRequest& request = live[id];
  if (request.moments.first_token != kForever) return;  // computed again after it had been preempted
  request.moments.first_token = request.moments.handed_over = shown;
  request.prefilled = now;
  if (decoder >= 0 && request.moments.output > 1) hand_over(id);
}

void ServingSystem::State::finish(std::int32_t id) {
  LiveRequest& request = live[id];
  request.moments.last_token = last_token = now;
  metrics.finished(request.moments);
  feed.answered(request.tag, now);
  free_slots.push_back(id);
}

void ServingSystem::State::hand_over(std::int32_t id) {
  live[id].decode = choose(decoder);
  port(live[id].decode).waiting.push_back(id);
  start_transfers(live[id].decode);
}

// Room in the cache that takes in comes first: without it, caches wait where they were computed.
void ServingSystem::State::start_transfers(const Location& at) {
  std::deque<std::int32_t>& waiting = port(at).waiting;
  while (!waiting.empty() && replica(at).reserve(live[waiting.front()].moments.input)) {
    start_transfer(waiting.front());
    waiting.pop_front();
  }
}

// Layer by layer, the transfer went on beside the computation from its beginning, where there was room at
// once; the last layer is left in any case.
void ServingSystem::State::start_transfer(std::int32_t id) {
  const LiveRequest& request = live[id];
  const TransferRules& transfer = rules.transfer;
  const double bytes = transfer.bytes_per_token * request.moments.input;
  const Time whole = time_from_seconds(Bytes{bytes} / transfer.rate);
  const bool early = transfer.layerwise && request.prefilled == now;
  const Time begin = early ? request.moments.admitted : now;
  Port &from = port(request.prefill), &to = port(request.decode);
  const Time start = std::max({begin, from.free, to.free}) + transfer.latency;
  const Time least = early ? Time{whole.ns / transfer.layers} : Time{};
  const Time end = std::max(start + whole, now + least);
  from.free = to.free = end;
  transferred += bytes;
  post(end, Event::Kind::kTransfer, id);
}

void ServingSystem::State::end_transfer(std::int32_t id) {
  LiveRequest& request = live[id];
  request.moments.handed_over = std::max(now, request.moments.first_token);
  replica(request.prefill).release(id);
  replica(request.decode)
      .adopt({id, request.moments.input, request.moments.output - 1, {}}, request.moments.first_token);
  kick(request.prefill);
  kick(request.decode);
}

ServingSystem::ServingSystem(const SystemRules& rules, RequestFeed& feed)
    : state_(std::make_unique<State>(rules, feed)) {}
ServingSystem::~ServingSystem() = default;

bool ServingSystem::advance() {
  State& s = *state_;
  const std::optional<Time> due = s.feed.due();
  if (due && (s.events.empty() || *due <= s.events.top().time)) {
    s.arrive();
    return true;
  }
  if (s.events.empty()) {
    if (waiting() > 0)
      throw run_error(fmt::format("{} requests wait for each other at {}", waiting(), to_text(s.now)));
    return false;
  }
  const Event event = s.events.top();
  s.events.pop();
  s.carry_out(event);
  return true;
}

Time ServingSystem::now() const {
  return state_->now;
}

std::int64_t ServingSystem::waiting() const {
  return static_cast<std::int64_t>(state_->live.size() - state_->free_slots.size());
}

const ServiceMetrics& ServingSystem::metrics() const {
  return state_->metrics;
}

double ServingSystem::transferred_bytes() const {
  return state_->transferred;
}

Time ServingSystem::intake() const {
  return state_->intake.busy();
}

std::vector<PoolFigures> ServingSystem::pools() const {
  std::vector<PoolFigures> figures;
  for (std::size_t p = 0; p < state_->pools.size(); ++p) {
    const PoolState& pool = state_->pools[p];
    PoolFigures& of = figures.emplace_back();
    of.name = state_->rules.pools[p].name;
    of.preemptions = pool.preemptions;
    for (const Instance& instance : pool.instances) {
      const Instance::Totals& totals = instance.totals();
      of.totals.iterations += totals.iterations;
      of.totals.prefills += totals.prefills;
      of.totals.busy += totals.busy;
      of.totals.rows += totals.rows;
      of.totals.slowest_rows += totals.slowest_rows;
      of.totals.padding += totals.padding;
      of.host.loop += instance.host().loop;
      of.host.output += instance.host().output;
      of.host.waits += instance.host().waits;
      for (int i = 0; i < instance.size(); ++i) {
        of.peak_pages = std::max(of.peak_pages, instance.replica(i).peak_pages());
        of.prefixes.add(instance.replica(i).prefixes());
        of.swaps.add(instance.replica(i).swaps());
        of.drafts.add(instance.replica(i).drafts());
      }
    }
    const double span = (state_->last_token - state_->first_arrival).seconds();
    const double instances = static_cast<double>(pool.instances.size());
    of.busy = span > 0 ? of.totals.busy.seconds() / (span * instances) : 0;
  }
  return figures;
}

}  // namespace moebius
