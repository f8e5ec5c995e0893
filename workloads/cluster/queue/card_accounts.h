// Where the time of cards went: every nanosecond of every card of a pool is in one item.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/units.h"

namespace moebius {

enum class CardItem : std::uint8_t {
  kUseful,      // training that stays
  kServed,      // a replica that is wanted, up
  kSlowed,      // what neighbours on shared links, slow nodes and power caps took more
  kRecomputed,  // training that was lost
  kCheckpoint,  // standing still to save, before a preemption and a resize too
  kStarting,    // images, data, processes, state
  kFault,       // detection, isolation, waiting for a node
  kSpare,       // free, kept for jobs that lose a node
  kFragmented,  // free: a job waits that needs no more cards, but they do not stand together
  kQuota,       // free: jobs wait that would fit, but their queues have what is theirs
  kHeld,        // free: jobs wait that would fit, but would delay one before them
  kPower,       // free: jobs wait that would fit, but a cap could not be kept with the first of them
  kTooFew,      // free: every job that waits needs more
  kUngrown,  // free: nobody waits; an elastic job that could be larger was just resized, lacks cards or ends
             // soon
  kIdle,     // free: nobody waits, and no job there could be larger
  kBroken,
};
inline constexpr int kNumCardItems = static_cast<int>(CardItem::kBroken) + 1;
std::string_view to_string(CardItem item);  // "useful"

using CardTime = __int128;  // cards x nanoseconds

class CardAccounts {
 public:
  void add(CardItem item, std::int64_t cards, Time time) {
    items_[static_cast<int>(item)] += CardTime{cards} * time.ns;
  }
  void move(CardItem from, CardItem to, CardTime what) {
    items_[static_cast<int>(from)] -= what;
    items_[static_cast<int>(to)] += what;
  }
  CardTime of(CardItem item) const { return items_[static_cast<int>(item)]; }
  double seconds(CardItem item) const { return static_cast<double>(of(item)) * 1e-9; }
  CardTime all() const;
  CardTime held() const;  // by jobs: kUseful to kFault
  CardAccounts& operator+=(const CardAccounts& other);

 private:
  std::array<CardTime, kNumCardItems> items_ = {};
};

}  // namespace moebius
