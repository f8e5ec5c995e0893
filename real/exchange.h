// How ranks meet, threads of one process or of several: every member of a group brings a piece for every
// other, and takes what the others brought. All collectives are made of this; point-to-point messages are
// buffered.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "real/monitor.h"
#include "real/processes/byte_stream.h"

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

// Ranks of other processes; without functions there are none. post() returns at once, and what is posted
// reaches deliver() of the exchange where the rank lives.
struct OutsideRanks {
  std::function<bool(std::int32_t rank)> is_here = {};
  std::function<void(std::int32_t rank, ByteString message)> post = {};
};

template <class Real>
class Exchange {
 public:
  using Pieces = std::vector<std::span<const Real>>;

  explicit Exchange(Monitor& monitor, OutsideRanks outside = {})
      : monitor_(monitor), outside_(std::move(outside)) {}

  // Brings give[i] to member i (own piece included), waits for everyone, calls take with the pieces for this
  // member in the order of members, and returns when all have taken: until then the pieces must stay. The
  // result is the moment when the last member arrived, the same for all in a process.
  std::chrono::steady_clock::time_point swap_pieces(const MeetingKey& key, const Caller& caller,
                                                    const Pieces& give,
                                                    const std::function<void(const Pieces&)>& take);

  void send(const MeetingKey& key, std::vector<Real> message);  // returns at once
  std::vector<Real> receive(const MeetingKey& key, const Caller& caller);

  // What another process posted.
  void deliver(ByteReader& message);

 private:
  using Values = std::vector<Real>;
  // Of a member elsewhere, for one here.
  struct PieceKey {
    MeetingKey meeting;
    std::int32_t from = 0, to = 0;  // members
    auto operator<=>(const PieceKey&) const = default;
  };
  struct Meeting {
    std::vector<const Pieces*> given;  // by member
    std::map<std::pair<std::int32_t, std::int32_t>, Values>
        outside;           // by members from, to; when all are there
    std::size_t here = 0;  // members that live here
    bool ready = false;    // everyone has arrived, or what they bring
    std::size_t arrived = 0, taken = 0, left = 0;
    std::chrono::steady_clock::time_point complete;  // when the last one arrived
  };

  bool is_here(std::int32_t rank) const { return !outside_.is_here || outside_.is_here(rank); }
  void post_pieces(const MeetingKey& key, std::int32_t member, const Pieces& give);
  void settle(const MeetingKey& key, Meeting& meeting);
  template <class Visit>
  bool each_outside(const MeetingKey& key, const Visit& visit);

  Monitor& monitor_;
  const OutsideRanks outside_;
  std::map<MeetingKey, Meeting> meetings_;
  std::map<MeetingKey, std::deque<Values>> messages_;  // oldest first
  std::map<PieceKey, std::deque<Values>> pieces_;      // that came from outside, oldest first
};

}  // namespace moebius
