// How ranks on threads meet: every member of a group brings a piece for every other, and takes what the
// others brought. All collectives are made of this; point-to-point messages are buffered.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "real/monitor.h"

namespace moebius {

// What makes two calls the same meeting.
struct MeetingKey {
  std::vector<std::int32_t> ranks;  // in group order; of a message: sender, receiver
  int group = 0;                    // GroupRole
  std::int32_t step = 0, microbatch = 0;
  std::uint32_t match = 0;
  std::int32_t round = 0;  // several meetings of one op

  auto operator<=>(const MeetingKey&) const = default;
};

// Who calls, and what to name in the sentence about a deadlock.
struct Caller {
  std::int32_t rank = 0;
  std::int32_t member = 0;  // index in key.ranks
  std::string what;         // "rank 3 in all_reduce of gradients"
};

template <class Real>
class Exchange {
 public:
  using Pieces = std::vector<std::span<const Real>>;

  explicit Exchange(Monitor& monitor) : monitor_(monitor) {}

  // Brings give[i] to member i (own piece included), waits for everyone, calls take with the pieces for this
  // member in the order of members, and returns when all have taken: until then the pieces must stay. The
  // result is the moment when the last member arrived, the same for all.
  std::chrono::steady_clock::time_point swap(const MeetingKey& key, const Caller& caller, const Pieces& give,
                                             const std::function<void(const Pieces&)>& take);

  void send(const MeetingKey& key, std::vector<Real> message);  // returns at once
  std::vector<Real> receive(const MeetingKey& key, const Caller& caller);

 private:
  struct Meeting {
    std::vector<const Pieces*> given;  // by member
    std::size_t arrived = 0, taken = 0, left = 0;
    std::chrono::steady_clock::time_point complete;  // when the last one arrived
  };

  Monitor& monitor_;
  std::map<MeetingKey, Meeting> meetings_;
  std::map<MeetingKey, std::vector<std::vector<Real>>> messages_;  // oldest first
};

}  // namespace moebius
