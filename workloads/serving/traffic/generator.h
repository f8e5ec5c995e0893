// Traffic that is drawn instead of recorded: sessions begin by a law of arrivals; each has a prompt of the
// system that it shares with others, and turns, whose input is everything said in the session so far and
// something new. A request is a turn; one turn a session makes requests that share nothing but that prompt.
// Everything is a function of the seed; memory holds the sessions under way and no more.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/serving/traffic/arrivals.h"
#include "workloads/serving/traffic/traffic_request.h"

namespace moebius {

// Lognormal: `mean` tokens, `sigma` of their logarithm; at least 1. A sigma of 0: always the mean.
struct TokenLaw {
  double mean = 1, sigma = 0;
};

// What sessions are made of.
struct SessionShape {
  double turns = 1;         // mean; geometric, at least 1
  TokenLaw first, further;  // new tokens of the first turn (beside the shared ones) and of others
  TokenLaw output;
  double shared_tokens = 0;           // of the prompt of the system
  int shared_prompts = 1;             // different ones; a session has one of them
  Time pause;                         // mean between two turns: of a person (exponential) or a tool
  double images = 0;                  // mean of a session, in its first turn
  double image_tokens = 0;            // of each, beside the text
  std::int64_t most_tokens = 131072;  // a session ends before its input and output are longer
};

// Turns that a session has, mean: fewer than `turns` where it ends for its length.
double mean_turns(const SessionShape& shape);

struct Generator {
  Arrivals arrivals;  // of sessions
  SessionShape session;
  std::int64_t requests = 1;
  std::int64_t block_tokens = 512;
  std::uint64_t seed = 1;
};

std::unique_ptr<TrafficStream> generate(const Generator& generator);

// Kinds of traffic with the figures that they start from; `rate` is of requests, a second.
struct TrafficKind {
  std::string_view name, help;
  double rate;
  SessionShape session;
};
std::span<const TrafficKind> traffic_kinds();

}  // namespace moebius
