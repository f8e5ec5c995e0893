#include "workloads/serving/system/serving_system.h"

#include <fmt/format.h>

#include "workloads/serving/system/serving_state.h"

namespace moebius {

std::vector<ServiceGoal> goals_of(const SystemRules& rules) {
  const bool answers_alone = std::all_of(rules.pools.begin(), rules.pools.end(), [](const PoolRules& pool) {
    return pool.role == PoolRole::kDecode;
  });
  std::vector<ServiceGoal> goals;
  goals.reserve(rules.classes.size());
  for (const RequestClass& of : rules.classes) {
    goals.push_back(of.goal);
    if (answers_alone) goals.back().ttft = {};
  }
  return goals;
}

void ServingSystem::State::kick(const Location& at) {
  if (instance(at).busy()) return;
  if (rules.carrier) {
    const bool starts = instance(at).start(now);
    note_decision(at);
    if (starts) rules.carrier->iterate(pools[at.pool].first + at.instance);
    return;
  }
  const std::optional<Time> end = instance(at).begin(now);
  note_decision(at);  // of one without rows too: it may have driven sequences out
  if (!end) return;
  if (rules.observer) tell_iteration(at, now, *end);
  post(*end, ServiceEvent::Kind::kIteration, pools[at.pool].first + at.instance);
}

// What one lane has left in their cache, others may wait for.
void ServingSystem::State::kick_all_lanes(const Location& at) {
  kick(at);
  const std::int32_t lanes = pool_of(at).lanes, first = at.instance / lanes * lanes;
  for (std::int32_t i = first; lanes > 1 && i < first + lanes; ++i) {
    if (i == at.instance) continue;
    if (pool_of(at).role == PoolRole::kDecode)
      for (std::int32_t r = 0; r < instance(at).size(); ++r) start_transfers({at.pool, i, r});
    kick({at.pool, i, 0});
  }
}

void ServingSystem::State::note_decision(const Location& at) {
  instance(at).visit_awake([&](const Replica& replica) {
    for (const std::int32_t id : replica.admitted())
      live[id].moments.admitted = std::min(live[id].moments.admitted, now);
    for (const std::int32_t id : replica.swapped_in()) end_preemption(id, at.pool);
    for (const std::int32_t id : replica.preempted()) live[id].preempted = now;
    pools[at.pool].preemptions += static_cast<std::int64_t>(replica.preempted().size());
  });
}

void ServingSystem::State::carry_out(const ServiceEvent& event) {
  now = event.time;
  switch (event.kind) {
    case ServiceEvent::Kind::kArrival:
      take_in(event.index);
      break;
    case ServiceEvent::Kind::kIteration:
      end_iteration(event.index);
      break;
    case ServiceEvent::Kind::kTransfer:
      end_transfer(event.index);
      break;
    case ServiceEvent::Kind::kEncoding:
      end_encoding(event.index);
      break;
    case ServiceEvent::Kind::kEncoded:
      encoded(event.index);
      break;
    case ServiceEvent::Kind::kFetched:
      kick(places[event.index]);
      break;
    case ServiceEvent::Kind::kTakenIn:
      enqueue(event.index);
      break;
    case ServiceEvent::Kind::kAnswered:
      finish(event.index);
      break;
  }
}

void ServingSystem::State::end_iteration(std::int32_t index) {
  const Location at = places[index];
  outcome.clear();
  instance(at).end(now, outcome);
  metrics.tokens(outcome.gaps);
  router->generated(outcome.tokens);
  const Time shown = instance(at).shown();
  for (const std::int32_t id : outcome.prefilled) first_token(id, shown);
  if (pool_of(at).wan) show_tokens(at);
  for (const std::int32_t id : outcome.finished) {
    if (shown > now) {
      post(shown, ServiceEvent::Kind::kAnswered, id);
    } else {
      finish(id);
    }
  }
  if (pools[at.pool].coming_to[at.instance] > 0 && pool_of(at).role == PoolRole::kDecode)
    for (std::int32_t i = 0; i < instance(at).size(); ++i) start_transfers({at.pool, at.instance, i});
  kick_all_lanes(at);
}

// An iteration's tokens go back to their users together.
void ServingSystem::State::show_tokens(const Location& at) {
  const WanRules& wan = *pool_of(at).wan;
  if (outcome.tokens == 0) return;
  const double bytes = static_cast<double>(outcome.tokens) * wan.output_bytes;
  const Time back = pools[at.pool].out.pass(now, bytes, wan) - now;
  for (const std::int32_t id : outcome.prefilled)
    if (live[id].prefilled == now) live[id].moments.first_back = back;
  for (const std::int32_t id : outcome.finished) live[id].moments.last_back = back;
}

void ServingSystem::State::end_preemption(std::int32_t id, int pool) {
  if (live[id].preempted == kForever) return;
  pools[pool].preempted += (now - live[id].preempted).seconds();
  live[id].preempted = kForever;
}

void ServingSystem::State::first_token(std::int32_t id, Time shown) {
  LiveRequest& request = live[id];
  if (request.moments.first_token != kForever) {  // computed again after it had been preempted
    end_preemption(id, request.decode.pool);
    return;
  }
  request.moments.first_token = request.moments.handed_over = shown;
  request.prefilled = now;
  if (!rules.transfer.brings_first_token) learn_first_token(id);
  if (!only_prefills && pool_of(request.prefill).role == PoolRole::kPrefill && request.moments.output > 1)
    hand_over(id);
}

Time ServingSystem::State::way_back(const Location& at) const {
  return pool_of(at).wan ? pool_of(at).wan->latency : Time{};
}

// Whoever goes by forecasts learns what became of them.
void ServingSystem::State::learn_first_token(std::int32_t id) {
  const LiveRequest& request = live[id];
  if (request.forecast.ns == 0) return;
  const RequestMoments& moments = request.moments;
  const Time came = moments.first_token + way_back(request.prefill) - moments.arrival;
  forecasts.add(request.forecast, came);
  if (rules.router != RouterPolicy::kSlaAware) return;
  router->first_token(request.prefill.pool, rules.classes[moments.service_class], came, request.forecast,
                      now);
}

void ServingSystem::State::learn_per_token(std::int32_t id) {
  const RequestMoments& moments = live[id].moments;
  if (live[id].token_forecast.ns == 0 || moments.output < 2) return;
  const Time came{(moments.last_token - moments.first_token).ns / (moments.output - 1)};
  router->per_token(live[id].decode.pool, rules.classes[moments.service_class], came, live[id].token_forecast,
                    now);
}

void ServingSystem::State::finish(std::int32_t id) {
  LiveRequest& request = live[id];
  request.moments.last_token = now;
  router->finished();
  learn_per_token(id);
  router->left(request.decode, rules.classes[request.moments.service_class]);
  pools[request.prefill.pool].tokens[request.moments.service_class].input +=
      only_decodes ? 0 : request.moments.input;
  pools[request.decode.pool].tokens[request.moments.service_class].output +=
      request.moments.output - request.moments.brought;
  metrics.finished(request.moments);
  if (rules.observer) rules.observer->finished(request.moments);
  feed.answered(request.tag, now + request.moments.last_back);
  free_slots.push_back(id);
}

ServingSystem::ServingSystem(const SystemRules& rules, RequestFeed& feed)
    : state_(std::make_unique<State>(rules, feed)) {}
ServingSystem::~ServingSystem() = default;

bool ServingSystem::advance() {
  State& s = *state_;
  const std::optional<Time> due = s.feed.due();
  if (due && (s.events.empty() || *due <= s.events.top().time)) {
    s.tell_moments(*due);
    s.arrive();
    s.start_waiting();
    return true;
  }
  if (s.events.empty()) {
    if (waiting() > 0)
      throw run_error(fmt::format("{} requests wait for each other at {}", waiting(), to_text(s.now)));
    return false;
  }
  const ServiceEvent event = s.events.top();
  s.events.pop();
  s.tell_moments(event.time);
  s.carry_out(event);
  s.start_waiting();
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

Time ServingSystem::span() const {
  return state_->metrics.span();
}

EncoderPool::Totals ServingSystem::encoders() const {
  return state_->encoders.totals();
}

Time ServingSystem::intake() const {
  return state_->intake.busy();
}

ForecastFigures ServingSystem::forecasts() const {
  return state_->forecasts;
}

std::vector<PoolFigures> ServingSystem::pools() const {
  std::vector<PoolFigures> figures;
  for (std::size_t p = 0; p < state_->pools.size(); ++p) {
    const PoolState& pool = state_->pools[p];
    PoolFigures& of = figures.emplace_back();
    of.name = state_->rules.pools[p].name;
    of.preemptions = pool.preemptions;
    of.preempted = pool.preempted;
    of.tokens = pool.tokens;
    of.wan = {pool.in.bytes(), pool.out.bytes(), pool.caches.bytes()};
    for (const Instance& instance : pool.instances) {
      const Instance::Totals& totals = instance.totals();
      of.totals.iterations += totals.iterations;
      of.totals.prefills += totals.prefills;
      of.totals.eager += totals.eager;
      of.totals.busy += totals.busy;
      of.totals.busy_with_prompts += totals.busy_with_prompts;
      of.totals.rows += totals.rows;
      of.totals.slowest_rows += totals.slowest_rows;
      of.totals.padding += totals.padding;
      of.totals.stalls.add(totals.stalls, 1);
      of.totals.waited.add(totals.waited, 1);
      of.host.add(instance.host());
      for (int i = 0; i < instance.size(); ++i) {
        of.peak_pages = std::max(of.peak_pages, instance.replica(i).peak_pages());
        of.prefixes.add(instance.replica(i).prefixes());
        of.swaps.add(instance.replica(i).swaps());
        of.drafts.add(instance.replica(i).drafts());
      }
    }
    const double span = this->span().seconds();
    const double instances = static_cast<double>(pool.instances.size());
    of.busy = span > 0 ? of.totals.busy.seconds() / (span * instances) : 0;
  }
  return figures;
}

}  // namespace moebius
