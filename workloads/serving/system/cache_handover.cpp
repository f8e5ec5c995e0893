// How caches move from where prompts are computed to where decoding goes on.
#include "workloads/serving/system/serving_state.h"

namespace moebius {

ByteRate ServingSystem::State::rate_of(const PoolRules& pool) const {
  return pool.transfer_rate.value > 0 ? pool.transfer_rate : rules.transfer.rate;
}

// The slower of both ends.
ByteRate ServingSystem::State::rate_between(const PoolRules& from, const PoolRules& to) const {
  return std::min(rate_of(from), rate_of(to));
}

// How many times as long as its share of a cache a layer takes: it stands on one stage of either end, and has
// the ways of that alone.
double ServingSystem::State::slower_layer(const PoolRules& from, const PoolRules& to) const {
  const double layer =
      std::min(rate_of(from).value / from.sending_stages, rate_of(to).value / to.sending_stages);
  return layer > 0 ? rate_between(from, to).value / layer : 1;
}

// Of what decodes it, the format and the heads count.
double ServingSystem::State::bytes_of_token(const PoolRules& decoding) const {
  return decoding.cache_bytes_per_token > 0 ? decoding.cache_bytes_per_token : rules.transfer.bytes_per_token;
}

// Beside the bytes.
Time ServingSystem::State::calls_of_transfer() const {
  return {rules.transfer.call.ns * rules.transfer.layers};
}

// Where users wait for it: of all layers, or of the last one where the others have left, to the pool that
// takes them in soonest.
HandOver ServingSystem::State::hand_over_from(const PoolRules& pool) const {
  const TransferRules& transfer = rules.transfer;
  if (!transfer.brings_first_token || pool.role != PoolRole::kPrefill) return {};
  const double before = transfer.layerwise ? 0 : transfer.latency.seconds();
  std::optional<HandOver> least;
  for (const PoolRules& to : rules.pools) {
    if (to.role != PoolRole::kDecode) continue;
    const ByteRate rate = rate_between(pool, to);
    const double left = transfer.layerwise ? slower_layer(pool, to) / transfer.layers : 1;
    const double of_sequence = Bytes{transfer.bytes_per_sequence} / rate + calls_of_transfer().seconds();
    const HandOver found{before + left * of_sequence, left * (Bytes{bytes_of_token(to)} / rate)};
    if (!least || found.per_token < least->per_token) least = found;
  }
  return least.value_or(HandOver{});
}

void ServingSystem::State::hand_over(std::int32_t id) {
  const RouteRequest request = route_of(id);
  const std::optional<Location> at = router->for_decoding(request, now);
  CHECK(at, "a request was taken that no pool goes on with");
  if (rules.router == RouterPolicy::kSlaAware)
    live[id].token_forecast = router->forecast(*at, request, now).per_token;
  const RequestClass& of = rules.classes[live[id].moments.service_class];
  router->left(live[id].decode, of);
  router->decodes(*at, of);
  live[id].decode = *at;
  replica(*at).expect(live[id].moments.input);
  add_coming(live[id].decode, id);
  start_transfers(live[id].decode);
}

// Room in the cache that takes in comes first: without it, caches wait where they were computed.
void ServingSystem::State::start_transfers(const Location& at) {
  std::deque<std::int32_t>& waiting = coming(at);
  const auto has_room = [&](std::int32_t id) {
    return replica(at).reserve(id, live[id].moments.input, live[id].moments.output - 1);
  };
  while (!waiting.empty() && has_room(waiting.front())) {
    only_decodes ? adopt_cached(waiting.front()) : start_transfer(waiting.front());
    waiting.pop_front();
    --pools[at.pool].coming_to[at.instance];
  }
}

double ServingSystem::State::cache_bytes(std::int32_t id) const {
  const LiveRequest& request = live[id];
  const PoolRules& pool = pool_of(request.decode);
  const ReplicaRules& replica = pool.instance.replica;
  return bytes_of_token(pool) *
             replica.parts.kept(static_cast<double>(request.moments.input), replica.page_tokens) +
         rules.transfer.bytes_per_sequence;
}

// Layer by layer, a cache leaves while its prompt is computed, as far as both ports are idle. Tokens of the
// last iteration leave from the end of its first layer on, those before them from the beginning; the last
// layer of the last ones is left in any case.
Time ServingSystem::State::sent_meanwhile(std::int32_t id, Time whole) {
  const LiveRequest& request = live[id];
  const TransferRules& transfer = rules.transfer;
  const Replica::LastChunk chunk = replica(request.prefill).last_chunk(id);
  const Time last{
      static_cast<std::int64_t>(static_cast<double>(whole.ns) * chunk.tokens / request.moments.input)};
  const double slower = slower_layer(pool_of(request.prefill), pool_of(request.decode));
  const Time layer{static_cast<std::int64_t>(static_cast<double>(last.ns / transfer.layers) * slower)};
  const Time first_layer = chunk.begun + Time{(now - chunk.begun).ns / transfer.layers};
  CachePort &from = port(request.prefill), &to = port(request.decode);
  return pass_meanwhile(from, to, request.moments.admitted + transfer.latency, now, whole - last) +
         pass_meanwhile(from, to, first_layer + transfer.latency, now, last - std::min(last, layer));
}

// What has not left while the prompt was computed, where there was room at once, goes behind all that is to
// go.
void ServingSystem::State::start_transfer(std::int32_t id) {
  const LiveRequest& request = live[id];
  const TransferRules& transfer = rules.transfer;
  const double bytes = cache_bytes(id);
  transferred += bytes;
  if (rules.carrier) return rules.carrier->move_cache(id, request.prefill, request.decode);
  const ByteRate rate = rate_between(pool_of(request.prefill), pool_of(request.decode));
  const Time whole = time_from_seconds(Bytes{bytes} / rate) + calls_of_transfer();
  CachePort &from = port(request.prefill), &to = port(request.decode);
  TieredCache* const tiers = pools[request.prefill.pool].tiers.get();
  if (tiers != nullptr) from.take(from.free(), tiers->sends_from(number_of(request.prefill)));
  const bool early = transfer.layerwise && request.prefilled == now;
  const Time sent = early ? sent_meanwhile(id, whole) : Time{};
  const Time begin = std::max({now, from.free(), to.free()});
  Time end = begin + (sent.ns > 0 ? Time{} : transfer.latency) + (whole - sent);
  // Pools that both stand elsewhere stand together.
  if (pool_of(request.prefill).wan.has_value() != pool_of(request.decode).wan.has_value()) {
    const Location& away = pool_of(request.prefill).wan ? request.prefill : request.decode;
    const WanRules& wan = *pool_of(away).wan;
    WanPipe& link = pools[away.pool].caches;
    // What left while the prompt was computed has the link since then; the rest sets out now.
    const double gone =
        sent.ns > 0 ? bytes * (static_cast<double>(sent.ns) / static_cast<double>(whole.ns)) : 0;
    if (early) link.pass(request.moments.admitted, gone, wan);
    end = std::max(end, link.pass(now, bytes - gone, wan));
  }
  from.take(begin, end);
  to.take(begin, end);
  if (tiers != nullptr) tiers->sent(number_of(request.prefill), end);
  post(end, ServiceEvent::Kind::kTransfer, id);
}

// As one that has its first token and goes on.
Sequence ServingSystem::State::decoding_of(std::int32_t id) const {
  const RequestMoments& moments = live[id].moments;
  return {.id = id,
          .prompt = moments.input,
          .output = moments.output - 1,
          .priority = rules.classes[moments.service_class].priority,
          .number = static_cast<std::uint32_t>(live[id].tag)};
}

void ServingSystem::State::end_transfer(std::int32_t id) {
  LiveRequest& request = live[id];
  request.moments.handed_over = std::max(now, request.moments.first_token);
  if (rules.transfer.brings_first_token) {
    const Time computed = request.moments.first_token;
    request.moments.first_token = request.moments.handed_over =
        std::max(request.moments.handed_over, instance(request.decode).until());
    request.moments.moved = request.moments.first_token - computed;
    learn_first_token(id);
  }
  replica(request.prefill).release(id);
  replica(request.decode).adopt(decoding_of(id), request.moments.first_token);
  kick_all_lanes(request.prefill);
  kick(request.decode);
}

}  // namespace moebius
