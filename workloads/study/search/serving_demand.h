// What the traffic of a service asks for, whatever plan serves it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/scenario/scenario.h"

namespace moebius {

// Ways to count tokens: one that attends to k keys counts 1 + weight k. What takes longest by any of them is
// what it takes at least.
inline constexpr std::array kKeyWeights{0.0, 1.0 / 256, 1.0 / 2048, 1.0 / 16384, 1.0 / 131072};
using TokenCounts = std::array<double, kKeyWeights.size()>;

struct DemandedRequest {
  double arrival = 0;  // seconds
  std::int64_t input = 0, output = 0;
  // Of the input, tokens that no request before it begins with: who computes least computes these, at least
  // one. All of it where caches are not shared.
  std::int64_t fresh = 0;
  std::int32_t service_class = 0;

  // By each weight, at least: of its prompt that are computed, and of its answer after the first one.
  TokenCounts prompt_counts() const;
  TokenCounts answer_counts() const;
};

struct ServingDemand {
  std::vector<DemandedRequest> requests;  // as they come
  bool open = false;                      // they come at times of their own, whatever becomes of the others
  double last = 0;                        // arrival, when open
  std::int64_t outputs = 0;               // tokens of all
  std::int64_t least_input = 0, most_input = 0, most_output = 0;

  // Numbers of requests, by rising counts of each weight.
  using Orders = std::array<std::vector<std::int32_t>, kKeyWeights.size()>;
  Orders by_prompt, by_answer;

  // Requests a second, when open.
  double rate() const { return static_cast<double>(requests.size()) / last; }
};

// Of the first `most` requests of a service.
ServingDemand demand_of(const Scenario& scenario, std::int64_t most);

// The scenario with no more requests than these.
void keep_first_requests(Scenario& scenario, std::int64_t most);

}  // namespace moebius
