// How caches move from where prompts are computed to where decoding goes on.
#include "workloads/serving/system/serving_state.h"

namespace moebius {

ByteRate ServingSystem::State::rate_of(const Location& at) const {
  const ByteRate own = pool_of(at).transfer_rate;
  return own.value > 0 ? own : rules.transfer.rate;
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
  port(live[id].decode).waiting.push_back(id);
  start_transfers(live[id].decode);
}

// Room in the cache that takes in comes first: without it, caches wait where they were computed.
void ServingSystem::State::start_transfers(const Location& at) {
  std::deque<std::int32_t>& waiting = port(at).waiting;
  while (!waiting.empty() && replica(at).reserve(waiting.front(), live[waiting.front()].moments.input)) {
    only_decodes ? adopt_cached(waiting.front()) : start_transfer(waiting.front());
    waiting.pop_front();
  }
}

// Layer by layer, the transfer went on beside the computation from its beginning, where there was room at
// once; the last layer is left in any case.
void ServingSystem::State::start_transfer(std::int32_t id) {
  const LiveRequest& request = live[id];
  const TransferRules& transfer = rules.transfer;
  const double bytes = transfer.bytes_per_token * request.moments.input + transfer.bytes_per_sequence;
  if (rules.carrier) {
    transferred += bytes;
    return rules.carrier->move_cache(id, request.prefill, request.decode);
  }
  const ByteRate rate = std::min(rate_of(request.prefill), rate_of(request.decode));
  const Time whole = time_from_seconds(Bytes{bytes} / rate) + Time{transfer.call.ns * transfer.layers};
  const bool early = transfer.layerwise && request.prefilled == now;
  const Time begin = early ? request.moments.admitted : now;
  CachePort &from = port(request.prefill), &to = port(request.decode);
  TieredCache* const tiers = pools[request.prefill.pool].tiers.get();
  if (tiers != nullptr) from.free = std::max(from.free, tiers->sends_from(number_of(request.prefill)));
  const Time start = std::max({begin, from.free, to.free}) + transfer.latency;
  const Time least = early ? Time{whole.ns / transfer.layers} : Time{};
  Time end = std::max(start + whole, now + least);
  if (request.prefill.pool != request.decode.pool) {
    for (const Location& at : {request.prefill, request.decode})
      if (pool_of(at).wan) end = std::max(end, pools[at.pool].caches.pass(begin, bytes, *pool_of(at).wan));
  }
  from.free = to.free = end;
  if (tiers != nullptr) tiers->sent(number_of(request.prefill), end);
  transferred += bytes;
  post(end, ServiceEvent::Kind::kTransfer, id);
}

void ServingSystem::State::end_transfer(std::int32_t id) {
  LiveRequest& request = live[id];
  request.moments.handed_over = std::max(now, request.moments.first_token);
  if (rules.transfer.brings_first_token)
    request.moments.first_token = request.moments.handed_over =
        std::max(request.moments.handed_over, instance(request.decode).until());
  if (rules.transfer.brings_first_token) learn_first_token(id);
  replica(request.prefill).release(id);
  replica(request.decode)
      .adopt({id, request.moments.input, request.moments.output - 1, {}}, request.moments.first_token);
  kick(request.prefill);
  kick(request.decode);
}

}  // namespace moebius
