// What a service may be told to do: what pools do, where requests go, which are turned away. Names alone, for
// whoever reads or carries them out.
#pragma once

#include <cstdint>

namespace moebius {

enum class PoolRole : std::uint8_t { kBoth, kPrefill, kDecode };

// To which instance a request goes.
enum class RouterPolicy : std::uint8_t {
  kRoundRobin,
  kLeastRequests,
  kLeastTokens,  // of prompts to compute and of contexts to read
  // Least tokens, of which those of the prompt that a replica has in its cache count as not there: the cost
  // of NVIDIA Dynamo's router with its weight of 1, prefill blocks that are not cached plus blocks in use.
  kKvAware,
  // Where the request costs least, of those that are forecast to keep what its class is promised; where none
  // does, which misses by the smallest factor.
  kSlaAware,
};

enum class AdmissionPolicy : std::uint8_t {
  kNone,        // all are taken
  kQueueLimit,  // not those that find too many waiting where they would go
  kPredicted,   // not those whose first token, or time per token, is forecast to come later than promised
};

struct AdmissionRules {
  AdmissionPolicy policy = AdmissionPolicy::kNone;
  std::int64_t most_waiting = 0;  // kQueueLimit: on a replica or on their way there, without pages
};

}  // namespace moebius
