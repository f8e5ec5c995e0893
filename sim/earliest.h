// Who of many comes first, where each has one time at which something happens to it: by time, then by id. A
// tournament: a new time costs the matches on the way to the top, and none is entered twice.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "hw/units.h"

namespace moebius {

class Earliest {
 public:
  // One more, whose number is how many there were; nothing happens to it yet.
  void add() {
    if (count_++ < entries_.size()) return;
    entries_.resize(entries_.empty() ? 2 : 2 * entries_.size());
    play_all();
  }
  // kForever: nothing happens to it.
  void set(std::int32_t who, Time time, std::uint64_t id) {
    entries_[who] = {time, id};
    Entry best = entries_[who];
    std::int32_t winner = who;
    for (std::size_t place = entries_.size() + who; place > 1; place /= 2) {
      const std::int32_t rival = winners_[place ^ 1];
      if (entries_[rival].is_before(best)) best = entries_[rival], winner = rival;
      const std::int32_t before = std::exchange(winners_[place / 2], winner);
      if (winner == before && winner != who) return;  // as little changes above
    }
  }
  // Of the first; kForever where nothing happens to any.
  Time time() const { return count_ == 0 ? kForever : entries_[first()].time; }
  std::int32_t first() const { return winners_[1]; }

 private:
  struct Entry {
    Time time = kForever;
    std::uint64_t id = 0;
    bool is_before(const Entry& other) const {
      return time < other.time || (time == other.time && id < other.id);
    }
  };

  void play_all() {
    winners_.resize(2 * entries_.size());
    std::iota(winners_.begin() + static_cast<std::ptrdiff_t>(entries_.size()), winners_.end(), 0);
    for (std::size_t match = entries_.size() - 1; match > 0; --match) {
      const std::int32_t left = winners_[2 * match], right = winners_[2 * match + 1];
      winners_[match] = entries_[right].is_before(entries_[left]) ? right : left;
    }
  }

  std::vector<Entry> entries_;         // as many as a power of two; nothing happens to those beyond the count
  std::vector<std::int32_t> winners_;  // by match, the final is 1; from entries_.size() on: those who play
  std::size_t count_ = 0;
};

}  // namespace moebius
