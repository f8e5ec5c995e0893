// One request of traffic, and where requests come from: files and generators alike give them one by one, in
// the order of arrival, so that traffic of any length is never held whole.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"

namespace moebius {

inline constexpr double kMostTokens = 1 << 24;  // of a request, of an iteration

struct TrafficRequest {
  Time arrival;  // since the traffic began
  std::int64_t input_tokens = 0, output_tokens = 0;
  // One id for each block of `block_tokens` of the input, the last of which may be partial. Equal ids: equal
  // inputs from the first token to the end of that block. Empty: nothing is known of what inputs share.
  std::vector<std::uint64_t> blocks;
  std::int64_t block_tokens = 0;
  std::int64_t session = -1;  // of whose conversation it is a turn; -1: not told
  // Whose answer it goes on from: the number of that request in the stream, from 0. The user or the tool
  // takes `pause` from the end of that answer; before `arrival`, which is what the trace says, or as if
  // serving took no time, it does not come anyway. -1: it comes at `arrival`.
  std::int64_t follows = -1;
  Time pause;
  bool awaited = false;     // one of those to come may follow it
  std::int32_t images = 0;  // whose tokens are in input_tokens too
};

class TrafficStream {
 public:
  virtual ~TrafficStream() = default;
  // The next request, or false at the end; arrivals never go back. What `request` held before is reused.
  virtual bool next(TrafficRequest& request) = 0;
};

}  // namespace moebius
