#include "workloads/serving/system/forecast.h"

#include <algorithm>
#include <cmath>

namespace moebius {
namespace {

// Tokens that an iteration gives a sequence, on average: guesses hold until one does not.
double tokens_a_turn(const Speculation& speculation) {
  double tokens = 1, holds = 1;
  for (int i = 0; i < speculation.drafts; ++i) tokens += holds *= speculation.acceptance;
  return tokens;
}

// Of what tokens of a prompt attend to, themselves included, behind `cached` ones.
double mean_keys(std::int64_t cached, std::int64_t computed) {
  return static_cast<double>(cached) + 0.5 * static_cast<double>(computed + 1);
}

}  // namespace

// Device and processor, as Instance::duration() adds them up.
double Forecaster::host(std::int64_t sequences) const {
  return (rules_.host.per_iteration + rules_.host.per_sequence * sequences).seconds();
}

// One iteration with so many prompt tokens on this replica; others of the instance have what waits there, to
// the same amount at most.
double Forecaster::prompts(const Instance& instance, int replica, std::int64_t tokens, double keys) {
  shapes_.assign(instance.size(), {});
  for (int i = 0; i < instance.size(); ++i) {
    const std::int64_t rows =
        i == replica ? tokens : std::min(tokens, instance.replica(i).load().prompt_tokens);
    shapes_[i].prefill_tokens = rows;
    shapes_[i].prefill_pairs = std::llround(static_cast<double>(rows) * keys);
    shapes_[i].prefill_sequences = rows > 0 ? 1 : 0;
  }
  const double device = cost_->forecast(shapes_);
  return rules_.host.overlapped ? std::max(device, host(1)) : device + host(1);
}

double Forecaster::iteration(const Instance& instance, int replica, const ForecastRequest& request,
                             std::int64_t& sequences) {
  shapes_.assign(instance.size(), {});
  const int rows = 1 + rules_.replica.speculation.drafts;
  for (int i = 0; i < instance.size(); ++i) {
    const ReplicaLoad load = instance.replica(i).load();
    const std::int64_t own = i == replica ? 1 : 0, there = load.waiting + load.running + own;
    const std::int64_t running = std::min<std::int64_t>(there, rules_.replica.max_running);
    if (running == 0) continue;
    const double context =
        static_cast<double>(load.context_tokens + load.prompt_tokens + own * request.input);
    StepShape& shape = shapes_[i];
    shape.decode_sequences = static_cast<std::int32_t>(running);
    shape.decode_tokens = shape.decode_sequences * rows;
    shape.decode_context = std::llround(context * static_cast<double>(running) / static_cast<double>(there)) +
                           shape.decode_tokens;
    if (i == replica) sequences = running;
  }
  const double device = cost_->forecast(shapes_);
  return rules_.host.overlapped ? std::max(device, host(sequences)) : device + host(sequences);
}

// So many running requests have to leave first; each leaves once in the time that a mean request decodes,
// over those that run.
double Forecaster::until_room(const Instance& instance, int replica, const ForecastRequest& request,
                              double mean_output) {
  const Replica& of = instance.replica(replica);
  const ReplicaLoad load = of.load();
  if (load.running == 0) return 0;
  const double slots = static_cast<double>(load.waiting + 1 + load.running - rules_.replica.max_running);
  const double page = rules_.replica.page_tokens;
  const double needed =
      static_cast<double>(of.prompt_tokens_before(request.priority) + request.input - request.cached) / page;
  const double held = static_cast<double>(rules_.replica.pages - of.free_pages());
  const double short_of = needed - static_cast<double>(of.free_pages());
  const double running = static_cast<double>(load.running);
  const double leaving = std::max(slots, held > 0 ? short_of / (held / running) : 0);
  if (leaving <= 0) return 0;
  std::int64_t sequences = 0;
  const double turn = iteration(instance, replica, request, sequences);
  return leaving / running * mean_output * turn / tokens_a_turn(rules_.replica.speculation);
}

Forecast Forecaster::prompt(const Instance& instance, int replica, const ForecastRequest& request,
                            double mean_output, Time now) {
  const Replica& of = instance.replica(replica);
  const ReplicaLoad load = of.load();
  const std::int64_t own = std::max<std::int64_t>(1, request.input - request.cached);
  const std::int64_t before = of.prompt_tokens_before(request.priority);
  const std::int64_t budget =
      rules_.replica.chunked ? rules_.replica.token_budget : std::max(own, rules_.replica.token_budget);
  const std::int64_t pieces = (own + budget - 1) / budget;
  const Time begins = instance.busy() ? std::max(now, instance.until()) : now;
  Forecast forecast;
  forecast.prompt_seconds =
      static_cast<double>(pieces) *
      prompts(instance, replica, (own + pieces - 1) / pieces, mean_keys(request.cached, own));
  double seconds = forecast.prompt_seconds;
  const std::int64_t waiting = std::max<std::int64_t>(1, load.waiting);
  const double keys = before > 0 ? mean_keys(0, before / waiting) : mean_keys(request.cached, own);
  if (before + own > budget) {
    const std::int64_t rows = std::min(budget, before);
    if (before > 0)
      seconds +=
          static_cast<double>(before) / static_cast<double>(rows) * prompts(instance, replica, rows, keys);
  } else {
    const auto joining = static_cast<std::int64_t>(request.arriving * (begins - now).seconds());
    const std::int64_t rows = std::min(budget, before + own + joining);
    if (rows > own) seconds = std::max(seconds, prompts(instance, replica, rows, keys));
  }
  if (rules_.replica.policy == BatchPolicy::kMixed && load.running > 0) {
    std::int64_t sequences = 0;  // each iteration gives those that decode a token, too
    seconds += static_cast<double>(pieces) * iteration(instance, replica, request, sequences);
  }
  if (!rules_.replica.hands_over) seconds += until_room(instance, replica, request, mean_output);
  forecast.first_token = begins - now + time_from_seconds(seconds);
  forecast.prompt_seconds /= instance.size();
  return forecast;
}

Forecast Forecaster::decode(const Instance& instance, int replica, const ForecastRequest& request,
                            double prompt_share) {
  std::int64_t sequences = 1;
  double seconds =
      iteration(instance, replica, request, sequences) / tokens_a_turn(rules_.replica.speculation);
  Forecast forecast;
  forecast.token_seconds = seconds / (static_cast<double>(sequences) * instance.size());
  constexpr double kMostPrompts = 0.95;  // who has done nothing else lately will do something else some time
  seconds /= 1 - std::min(kMostPrompts, prompt_share);
  forecast.per_token = time_from_seconds(seconds);
  return forecast;
}

}  // namespace moebius
