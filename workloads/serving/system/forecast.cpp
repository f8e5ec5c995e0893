#include "workloads/serving/system/forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "workloads/serving/latent_parts.h"

namespace moebius {
namespace {

// Tokens that an iteration gives a sequence, on average: guesses hold until one does not.
double tokens_a_turn(const Speculation& speculation) {
  double tokens = 1, holds = 1;
  for (int i = 0; i < speculation.drafts; ++i) tokens += holds *= speculation.holds(i);
  return tokens;
}

// As absorbed_tokens(); a prompt that is not cut is one part.
std::int64_t absorbed_of(const ReplicaRules& rules, std::int64_t cached, std::int64_t computed) {
  const std::int64_t part = rules.chunked ? rules.token_budget : computed;
  return absorbed_tokens(rules.absorbed_below, cached, computed, part);
}

// Of what tokens of a prompt attend to, themselves included, behind `cached` ones.
double mean_keys(std::int64_t cached, std::int64_t computed) {
  return static_cast<double>(cached) + 0.5 * static_cast<double>(computed + 1);
}

}  // namespace

// Device and processor, as HostLane::turn() adds them up. Of sequences that change prompts are known.
double Forecaster::with_host(double device) const {
  const HostCosts& host = rules_.host;
  std::int64_t prepared = 0, samples = 0;  // of the fullest replica
  double tokens = 0;                       // of all
  for (const StepShape& shape : shapes_) {
    const std::int64_t prompts = shape.prefill_sequences;
    prepared = std::max(prepared, host.by_change ? prompts : prompts + shape.decode_sequences);
    samples = std::max(samples, prompts + shape.decode_tokens);
    tokens +=
        static_cast<double>(prompts) + shape.decode_sequences * tokens_a_turn(rules_.replica.speculation);
  }
  double loop = (host.per_iteration + host.per_sequence * prepared).seconds();
  if (!host.parallel) loop += host.per_token.seconds() * tokens;
  const double submission = host.per_submission.seconds();
  device = std::max(device, submission) + host.per_sample.seconds() * static_cast<double>(samples);
  return host.overlapped ? std::max(device, loop + submission) : device + loop;
}

// All that are on a replica or on their way there, and this request where it is `own`.
void Forecaster::add_decoding(const ReplicaLoad& load, const ForecastRequest* own, double growth,
                              StepShape& shape) const {
  const double there =
      static_cast<double>(load.waiting + load.running + load.expected) + (own != nullptr ? 1 : 0);
  if (there <= 0) return;
  const std::int64_t running =
      std::clamp<std::int64_t>(std::llround(there * growth), 1, rules_.replica.max_running);
  const double context = static_cast<double>(load.context_tokens + load.prompt_tokens + load.expected_tokens +
                                             (own != nullptr ? own->input : 0));
  shape.decode_sequences = static_cast<std::int32_t>(running);
  shape.decode_tokens = shape.decode_sequences * (1 + rules_.replica.speculation.drafts);
  shape.decode_context = std::llround(context * static_cast<double>(running) / there) + shape.decode_tokens;
}

// One iteration. Of its prompts other replicas of the instance have what waits there, to the same amount at
// most. Where it has prompts those that run decode beside them; else all that are or will be there.
double Forecaster::seconds(const Instance& instance, int replica, const ForecastRequest& request,
                           const Rows& rows) {
  shapes_.assign(instance.size(), {});
  for (int i = 0; i < instance.size(); ++i) {
    ReplicaLoad load = instance.replica(i).load();
    StepShape& shape = shapes_[i];
    if (rows.prompts > 0) {
      shape.prefill_tokens = i == replica ? rows.prompts : std::min(rows.prompts, load.prompt_tokens);
      shape.prefill_pairs = std::llround(static_cast<double>(shape.prefill_tokens) * rows.keys);
      shape.prefill_sequences = shape.prefill_tokens > 0 ? 1 : 0;
      shape.absorbed = rows.absorbed && shape.prefill_tokens > 0;
      const std::int64_t images = i == replica ? rows.images : std::min(rows.images, load.images);
      shape.images = static_cast<std::int32_t>(images);
      load.waiting = load.expected = load.prompt_tokens = load.expected_tokens = 0;
    }
    const bool own = i == replica && rows.prompts == 0;
    if (rows.decodes) add_decoding(load, own ? &request : nullptr, rows.growth, shape);
  }
  return with_host(cost_of(instance));
}

double Forecaster::cost_of(const Instance& instance) {
  const bool eager = is_eager(rules_, shapes_);
  for (StepShape& shape : shapes_) shape.eager = eager;
  return instance.cost().forecast(shapes_);
}

// Of an iteration in which all replicas have as much to do: what each of them takes of the instance.
double Forecaster::share(const Instance& instance, const StepShape& each) {
  shapes_.assign(instance.size(), each);
  return with_host(cost_of(instance)) / instance.size();
}

double Forecaster::price_of_prompt(const Instance& instance, const ForecastRequest& request) {
  const ReplicaRules& rules = rules_.replica;
  const std::int64_t own = std::max<std::int64_t>(1, request.input - request.cached);
  const std::int64_t pieces = rules.chunked ? (own + rules.token_budget - 1) / rules.token_budget : 1;
  StepShape piece;
  piece.prefill_tokens = (own + pieces - 1) / pieces;
  piece.prefill_pairs =
      std::llround(static_cast<double>(piece.prefill_tokens) * mean_keys(request.cached, own));
  piece.prefill_sequences = 1;
  piece.absorbed = 2 * absorbed_of(rules, request.cached, own) > own;
  const double each = share(instance, piece);
  if (request.images == 0) return static_cast<double>(pieces) * each;
  piece.images = request.images;  // before the first one
  return static_cast<double>(pieces - 1) * each + share(instance, piece);
}

double Forecaster::price_of_token(const Instance& instance, const ForecastRequest& request) {
  const ReplicaRules& rules = rules_.replica;
  const auto context = request.input + static_cast<std::int64_t>(request.mean_output / 2);
  const std::int64_t pages = (context + rules.page_tokens - 1) / rules.page_tokens;
  const std::int64_t room = rules.pages / std::max<std::int64_t>(1, rules.parts.held(pages));
  StepShape full;
  full.decode_sequences = static_cast<std::int32_t>(std::clamp<std::int64_t>(room, 1, rules.max_running));
  full.decode_tokens = full.decode_sequences * (1 + rules.speculation.drafts);
  full.decode_context = full.decode_sequences * context + full.decode_tokens;
  return share(instance, full) / full.decode_sequences / tokens_a_turn(rules.speculation);
}

// So many running requests have to leave first; each leaves once in the time that a mean request decodes,
// over those that run.
double Forecaster::until_room(const Instance& instance, int replica, const ForecastRequest& request) {
  const Replica& of = instance.replica(replica);
  const ReplicaLoad load = of.load();
  if (load.running == 0) return 0;
  const double slots =
      static_cast<double>(load.waiting + load.expected + 1 + load.running - of.max_running());
  const double page = static_cast<double>(rules_.replica.page_tokens) / rules_.replica.parts.whole;
  const double needed = static_cast<double>(of.prompt_tokens_before(request.priority) + load.expected_tokens +
                                            request.input - request.cached) /
                        page;
  const double held = static_cast<double>(rules_.replica.pages - of.free_pages());
  const double short_of = needed - static_cast<double>(of.free_pages());
  const double running = static_cast<double>(load.running);
  const double leaving = std::max(slots, held > 0 ? short_of / (held / running) : 0);
  if (leaving <= 0) return 0;
  const double turn = seconds(instance, replica, request, {.decodes = true});
  return leaving / running * request.mean_output * turn / tokens_a_turn(rules_.replica.speculation);
}

// Iterations follow each other where others run: it comes in the middle of one.
Time Forecaster::begins(const Instance& instance, int replica, const ForecastRequest& request, Time now) {
  const Time there = now + request.away;
  if (!instance.busy() || instance.until() >= there)
    return instance.busy() ? std::max(there, instance.until()) : there;
  if (rules_.replica.hands_over || instance.replica(replica).load().running == 0) return there;
  return there + time_from_seconds(0.5 * seconds(instance, replica, request, {.decodes = true}));
}

Forecast Forecaster::prompt(const Instance& instance, int replica, const ForecastRequest& request, Time now) {
  const ReplicaRules& rules = rules_.replica;
  const Replica& of = instance.replica(replica);
  const ReplicaLoad load = of.load();
  const std::int64_t own = std::max<std::int64_t>(1, request.input - request.cached);
  const std::int64_t first = of.prompt_tokens_before(request.priority);
  const std::int64_t before = first + load.expected_tokens;
  const bool mixed = rules.policy == BatchPolicy::kMixed && !rules.hands_over && load.running > 0;
  const std::int64_t decoding = mixed ? load.running * (1 + rules.speculation.drafts) : 0;
  const std::int64_t budget = std::max<std::int64_t>(1, rules.token_budget - decoding);
  const double own_keys = mean_keys(request.cached, own);
  const std::int64_t waiting = std::max<std::int64_t>(1, load.waiting + load.expected);
  const double their_keys = before > 0 ? mean_keys(0, before / waiting) : own_keys;
  std::int64_t absorbed = absorbed_of(rules, request.cached, own);
  if (before >= waiting) absorbed += waiting * absorbed_of(rules, 0, before / waiting);
  const bool most_absorbed = 2 * absorbed > before + own;
  Forecast forecast;
  forecast.prompt_seconds = price_of_prompt(instance, request);
  const Time begins = this->begins(instance, replica, request, now);
  const auto behind = of.prompt_tokens_before(std::numeric_limits<std::int32_t>::min()) - first +
                      static_cast<std::int64_t>(request.arriving * (begins - now).seconds());
  // A prompt that is not cut and longer than the budget goes alone.
  const bool alone = !rules.chunked && own > budget;
  const std::int64_t sum = alone ? before : before + own;
  const std::int64_t full = alone ? (sum + budget - 1) / budget : (sum - 1) / budget;
  const std::int64_t rest = alone ? own : sum - full * budget;
  const std::int64_t last = alone ? own : std::min(budget, rest + behind);
  const double keys = (static_cast<double>(before) * their_keys + static_cast<double>(own) * own_keys) /
                      static_cast<double>(before + own);
  double seconds = this->seconds(
      instance, replica, request,
      {.prompts = last,
       .keys = keys,
       .decodes = mixed,
       .images = load.images + request.images,
       .absorbed = most_absorbed});
  if (full > 0)
    seconds += static_cast<double>(full) *
               this->seconds(instance, replica, request,
                             {.prompts = budget, .keys = keys, .decodes = mixed, .absorbed = most_absorbed});
  const double room = rules.hands_over ? 0 : until_room(instance, replica, request);
  forecast.first_token = begins - now + time_from_seconds(seconds + room);
  forecast.queues = before >= budget || room > 0;
  return forecast;
}

Forecast Forecaster::decode(const Instance& instance, int replica, const ForecastRequest& request) {
  constexpr double kMostPrompts = 0.95;  // who has done nothing else lately will do something else some time
  const double turns = 1 / (1 - std::min(kMostPrompts, request.prompt_share));
  const double tokens = tokens_a_turn(rules_.replica.speculation);
  const ReplicaLoad load = instance.replica(replica).load();
  const double there = static_cast<double>(load.waiting + load.running + load.expected + 1);
  Forecast forecast;
  forecast.token_seconds = price_of_token(instance, request);
  double seconds = this->seconds(instance, replica, request, {.decodes = true}) / tokens;
  // Of n there now, n exp(-s) are there after s times a mean stay, and (1 - exp(-s)) of those that are there
  // in the long run: over its own stay as many as 1 - 1/e of the first and 1/e of the others.
  const double long_run = std::max(1.0, request.joining * request.mean_output * seconds * turns);
  const double growth = (1 - std::exp(-1.0)) + std::exp(-1.0) * long_run / there;
  if (there > 1 || long_run > 1)
    seconds = this->seconds(instance, replica, request, {.decodes = true, .growth = growth}) / tokens;
  forecast.per_token = time_from_seconds(seconds * turns);
  return forecast;
}

}  // namespace moebius
