// What a pool of a service can do at best: tokens of prompts and of answers a second, the least time between
// two tokens, the room for caches. Bounds of whatever runs on it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "workloads/perform/perform.h"
#include "workloads/service/pools.h"
#include "workloads/study/search/serving_demand.h"
#include "workloads/study/search/serving_space.h"

namespace moebius {

inline constexpr double kForeverLong = std::numeric_limits<double>::infinity();  // seconds

struct PoolRates {
  PoolRole role = PoolRole::kBoth;
  int devices = 0;  // in use
  // Tokens a second by each way to count them; 0: it does not do that.
  TokenCounts prompts{};  // of all instances
  TokenCounts prompts_of_instance{};
  TokenCounts answers{};  // after a request's first token
  // Of these, at most, those of requests that are given the time per token that they are promised.
  TokenCounts kept{};
  double tpot = 0;     // seconds, least
  double first = 0;    // seconds of the shortest iteration with a prompt
  bool mixed = false;  // prompts and decoding share iterations
};

// The weights and one page fit, and an iteration beside them; tokens that a replica's cache holds.
struct PoolRoom {
  ServicePhase phase;
  std::int64_t cache_tokens = 0;
  double flops_of_token = 0, peak = 0;  // of an instance
};

// Nothing where it does not fit.
std::optional<PoolRoom> room_of(const Scenario& scenario, const ServicePhase& phase);

// By arithmetic alone: each token of the model's active parameters at the chips' peak.
PoolRates rates_by_peak(const PoolRoom& room);

// By iterations that are carried out on `start`, or are known from others: those at the edges between which a
// run interpolates (step_surface.h), in which replicas are as full as their limits let them be. What an
// iteration takes is taken never to fall with its rows or its keys, nor with those of other replicas, and
// rows in it not to get cheaper below an eighth of its limit. Where the plan has graphs, decoding is replayed
// however many sequences it has: beyond the captured ones nothing is sooner.
//
// Between edges seconds, tokens and their keys are linear in every coordinate: tokens over seconds is most at
// an edge.
//
// Answers in time: an iteration that has c of them takes t(c), and sequences that are given a token within g
// on average have sum m (t - g) <= 0 over the iterations that have m of theirs, m <= c. So for any u >= 0
// they have at most sum m (1 - u (t - g)), and a second of iterations at most max over c of c (1 + u g) /
// t(c) - u c of them: the least of that over u.
PoolRates timed_rates(const Scenario& scenario, const ServicePhase& phase, const SeatLimits& limits,
                      const PoolRoom& room, const ServingDemand& demand, double promised_tpot,
                      const StartExecutor& start, StepTimings& timings);

}  // namespace moebius
