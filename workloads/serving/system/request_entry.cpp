// How requests come into a serving system: past the router and admission, over the link to a pool that stands
// elsewhere, into the queue of a replica.
#include <cmath>

#include "workloads/serving/system/serving_state.h"

namespace moebius {

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
  const std::int64_t tokens = live[id].block_tokens;
  if (tokens == 0 || tokens != pool_of(live[id].prefill).instance.replica.shared_tokens) return {};
  const auto whole = static_cast<std::size_t>(live[id].moments.input / tokens);
  return kv::Chain(live[id].blocks).first(std::min(whole, live[id].blocks.size()));
}

std::vector<RoutedPool> ServingSystem::State::routed_pools() {
  std::vector<RoutedPool> routed;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const PoolRules& pool = rules.pools[p];
    const Time away = pool.wan ? pool.wan->latency * 2 : Time{};
    InstanceRules instance = pool.instance;
    instance.replica.hands_over = pool.role == PoolRole::kPrefill;
    routed.push_back(
        {pool.role, &pools[p].instances, instance, pool.usd_per_second, away, hand_over_from(pool),
         pools[p].loads.get()});
  }
  return routed;
}

// Pools whose caches could hold it; one that only takes in prompts, where another goes on with it or its
// first token is its last.
std::uint64_t ServingSystem::State::pools_with_room(std::int32_t input, std::int32_t output,
                                                    std::int32_t service_class) const {
  const std::uint64_t may = rules.classes[service_class].pools;
  std::uint64_t prompts = 0, decoding = 0, both = 0;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    if ((may >> p & 1) == 0 || !pools[p].instances.front().replica(0).fits(input, output)) continue;
    const PoolRole role = rules.pools[p].role;
    (role == PoolRole::kBoth      ? both
     : role == PoolRole::kPrefill ? prompts
                                  : decoding) |= std::uint64_t{1} << p;
  }
  return both | (decoding != 0 || output == 1 ? prompts | decoding : 0);
}

RouteRequest ServingSystem::State::route_of(std::int32_t id) const {
  const RequestMoments& moments = live[id].moments;
  return {.input = moments.input,
          .of = &rules.classes[moments.service_class],
          .pools = pools_with_room(moments.input, moments.output, moments.service_class),
          .waited = now - moments.arrival};
}

void ForecastFigures::add(Time forecast, Time came) {
  const double off =
      static_cast<double>(forecast.ns) / static_cast<double>(std::max<std::int64_t>(1, came.ns)) - 1;
  ++requests;
  error += std::abs(off);
  bias += off;
}

bool ServingSystem::State::accept(const RouteRequest& request, const std::optional<Location>& at) {
  const Rejection why = !at ? Rejection::kTooLong : Rejection::kTurnedAway;
  if (at && admits(rules.admission, *router, replica(*at), *at, request, now)) return true;
  metrics.rejected(arrival.service_class, why);
  feed.answered(arrival.tag, now);
  return false;
}

void ServingSystem::State::arrive() {
  feed.take(arrival);
  now = std::max(now, arrival.request.arrival);
  const auto input = static_cast<std::int32_t>(arrival.request.input_tokens);
  // A prompt that asks for nothing still ends in a token; one whose first token is there asks for another.
  // Where prompts alone are computed the first token is the last.
  const auto asked =
      static_cast<std::int32_t>(std::max<std::int64_t>(only_decodes ? 2 : 1, arrival.request.output_tokens));
  const std::int32_t output = only_prefills ? 1 : asked;
  metrics.submitted(arrival.service_class, now);
  router->arrived(now);
  const std::int64_t block = arrival.request.block_tokens;
  const std::size_t whole = block == 0 ? 0 : static_cast<std::size_t>(input / block);
  const kv::Chain blocks(arrival.request.blocks);
  const RouteRequest request{.input = input,
                             .chain = blocks.first(std::min(whole, blocks.size())),
                             .block_tokens = block,
                             .of = &rules.classes[arrival.service_class],
                             .pools = pools_with_room(input, output, arrival.service_class),
                             .images = arrival.request.images,
                             .encoding = encoding_of(arrival.request.images)};
  const std::optional<Location> at =
      only_decodes ? router->for_decoding(request, now) : router->for_prompt(request, now);
  if (!accept(request, at)) return;
  std::optional<Forecast> forecast;
  if (forecasts_requests()) forecast = router->forecast(*at, request, now);
  router->routed(*at, request);
  const std::int32_t id = take_slot();
  if (rules.carrier) rules.carrier->accepted(id, static_cast<std::int32_t>(arrival.tag));
  RequestMoments moments;
  moments.arrival = now;
  moments.input = input;
  moments.output = output;
  moments.service_class = arrival.service_class;
  live[id].moments = moments;
  live[id].tag = arrival.tag;
  live[id].prefilled = kForever;
  live[id].block_tokens = block;
  live[id].images = arrival.request.images;
  live[id].prefill = live[id].decode = *at;
  std::swap(live[id].blocks, arrival.request.blocks);
  replica(*at).expect(input);
  live[id].forecast = forecast ? forecast->first_token : Time{};
  live[id].token_forecast =
      forecast && rules.router == RouterPolicy::kSlaAware ? forecast->per_token : Time{};
  const std::optional<WanRules>& wan = pool_of(*at).wan;
  const Time reception = pool_of(*at).instance.host.receiving(input);
  if (!wan && reception.ns == 0) return take_in(id);
  const Time there = wan ? pools[at->pool].in.pass(now, input * wan->input_bytes, *wan) : now;
  live[id].moments.received = reception;
  post(later(there, reception), ServiceEvent::Kind::kArrival, id);
}

// Text becomes tokens: by workers, or by the loop of the engine that it goes to.
void ServingSystem::State::take_in(std::int32_t id) {
  RequestMoments& moments = live[id].moments;
  moments.there = now - moments.arrival;
  const HostCosts& host = pool_of(live[id].prefill).instance.host;
  const Time work = host.of_request(moments.input, live[id].images);
  if (host.parallel && work.ns > 0) return post(intake.serve(now, work), ServiceEvent::Kind::kTakenIn, id);
  instance(live[id].prefill).take_in(work);
  enqueue(id);
}

void ServingSystem::State::enqueue(std::int32_t id) {
  RequestMoments& moments = live[id].moments;
  if (rules.encoder.given() && live[id].images > 0) {
    encoders.enqueue(id, live[id].images);
    return begin_encoding();
  }
  const Location at = live[id].prefill;
  starting.push_back(at);
  if (only_decodes) {
    moments.brought = 1;
    add_coming(at, id);
    return start_transfers(at);
  }
  send_ahead(id);
  replica(at).enqueue({.id = id,
                       .prompt = moments.input,
                       .output = moments.output,
                       .chain = chain_of(id),
                       .priority = rules.classes[moments.service_class].priority,
                       .images = live[id].images,
                       .number = static_cast<std::uint32_t>(live[id].tag)});
}

// Its prompt's cache and first token are there: it needed room, and no transfer.
void ServingSystem::State::adopt_cached(std::int32_t id) {
  RequestMoments& moments = live[id].moments;
  moments.admitted = moments.first_token = moments.handed_over = now;
  replica(live[id].decode).adopt(decoding_of(id), now);
}

// Requests of one moment share their first iteration. Where a host receives them one after the other, the
// first one starts it: servers measured in bursts are told so by 17.1% in TTFT, and as if all came in
// together by 17.8.
void ServingSystem::State::start_waiting() {
  if (starting.empty()) return;
  const std::optional<Time> due = feed.due();
  if (due && *due <= now) return;
  for (const Location& at : starting) kick(at);
  starting.clear();
}

// Until images of a request that comes now are there; nothing where nobody asks, or no encoder stands apart.
Time ServingSystem::State::encoding_of(std::int32_t images) const {
  if (!rules.encoder.given() || images == 0 || !forecasts_requests()) return {};
  return encoders.forecast(now, images);
}

void ServingSystem::State::begin_encoding() {
  while (const auto begun = encoders.begin(now))
    post(begun->end, ServiceEvent::Kind::kEncoding, begun->replica);
}

void ServingSystem::State::end_encoding(std::int32_t encoder) {
  sent.clear();
  encoders.end(encoder, now, sent);
  for (const EncoderPool::Sent& of : sent) post(of.arrival, ServiceEvent::Kind::kEncoded, of.request);
  begin_encoding();
}

void ServingSystem::State::encoded(std::int32_t id) {
  live[id].moments.encoded = now;
  live[id].images = 0;
  enqueue(id);
}

}  // namespace moebius
