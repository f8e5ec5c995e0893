// Drawing distinct things in proportion to their weights: the draws behind skewed routes. Internal to
// routing_draw.h and its tests.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/routing/random_stream.h"

namespace moebius {

// Weights are whole numbers so that sums over what is left are exact, whatever the skew.
struct WeightedItem {
  std::uint64_t weight;  // from 1; of all items together below 2^61
  std::int32_t item;
};

// Draws an item in proportion to its weight in constant time (Walker 1977, Vose 1991), probabilities to
// 2^-32: 32 random bits times the number of slots are the slot and, behind the point, where in it.
class AliasTable {
 public:
  AliasTable() = default;
  explicit AliasTable(const std::vector<WeightedItem>& items);  // not empty, numbers below 2^16

  struct Slot {  // of eight bytes: tables of many sets of groups stay in the cache
    std::uint32_t threshold;
    std::uint16_t items[2];  // its own below the threshold, the other one from there
  };
  // For many draws in a row.
  struct Slots {
    const Slot* slots;
    std::uint64_t size;
    std::int32_t draw(std::uint32_t bits) const {
      const std::uint64_t place = bits * size;
      const Slot& slot = slots[place >> 32];
      return slot.items[static_cast<std::uint32_t>(place) >= slot.threshold];  // by index: nothing to foresee
    }
  };
  Slots slots() const { return {slots_.data(), slots_.size()}; }
  std::int32_t draw(RandomStream& random) const {
    return slots().draw(static_cast<std::uint32_t>(random.bits() >> 32));
  }

 private:
  std::vector<Slot> slots_;
};

// Things of which a token draws some, one after the other, each in proportion to its weight among those it
// does not have yet. Most come from an alias table and are drawn again when the token has them: cheap while
// what it has is a small part of the weight. The heaviest, the heads, stand apart and are left out once
// taken.
class WeightedPool {
 public:
  // `most`: the largest number that one token draws. There are as many heads as it takes that the `most`
  // heaviest of the rest hold at most three quarters of the rest: so a draw is made less than four times on
  // average.
  WeightedPool(std::vector<WeightedItem> items, std::int32_t most);
  static bool is_before(const WeightedItem& a, const WeightedItem& b) {  // heaviest first
    return a.weight != b.weight ? a.weight > b.weight : a.item < b.item;
  }

  const std::vector<WeightedItem>& heads() const { return heads_; }  // heaviest first
  std::uint64_t heads_weight() const { return heads_weight_; }
  std::uint64_t rest_weight() const { return rest_weight_; }
  const AliasTable& rest() const { return rest_; }

 private:
  std::vector<WeightedItem> heads_;
  AliasTable rest_;
  std::uint64_t heads_weight_ = 0, rest_weight_ = 0;
};

// What the token at hand has taken already.
class Taken {
 public:
  explicit Taken(std::int32_t items) : token_of_(items) {}

  void next_token() { ++token_; }
  bool has(std::int32_t item) const { return token_of_[item] == token_; }
  // True when the token did not have it.
  bool take(std::int32_t item) { return marks().take(item); }

  // Of the token at hand, for many items in a row.
  struct Marks {
    std::uint32_t* token_of;
    std::uint32_t token;
    bool take(std::int32_t item) const {
      const bool fresh = token_of[item] != token;
      token_of[item] = token;
      return fresh;
    }
  };
  Marks marks() { return {token_of_.data(), token_}; }

 private:
  std::vector<std::uint32_t> token_of_;  // that took an item last
  std::uint32_t token_ = 0;
};

// Takes `count` distinct items of an alias table, which must have as many.
inline void take_of_rest(RandomStream& random, const AliasTable& table, Taken& taken, std::int32_t count,
                         std::int32_t* out) {
  RandomStream stream = random;  // in registers: `out` could be anywhere
  const Taken::Marks marks = taken.marks();
  const AliasTable::Slots slots = table.slots();
  std::int32_t have = 0;
  const auto draw = [&](std::uint64_t bits) {
    const std::int32_t item = slots.draw(static_cast<std::uint32_t>(bits));
    out[have] = item;
    have += marks.take(item);  // no branch: whether it is new cannot be foreseen
  };
  const auto draw_two = [&] {
    const std::uint64_t bits = stream.bits();
    draw(bits >> 32);
    draw(bits);
  };
  for (std::int32_t i = 0; i + 1 < count; i += 2) draw_two();
  while (have < count) draw(stream.bits() >> 32);
  random = stream;
}

// A pool as the token at hand has left it.
struct OpenPool {
  explicit OpenPool(const WeightedPool& whole) : pool(&whole), heads_weight(whole.heads_weight()) {}

  const WeightedPool* pool;
  std::uint64_t heads_weight;  // of the heads not yet taken
};

// Takes `count` distinct items of the pools together, which have no item in common; `hand` is used up. CHECKs
// nothing: there must be as many items.
void take_items(RandomStream& random, std::vector<OpenPool>& hand, Taken& taken, std::int32_t count,
                std::int32_t* out);

}  // namespace moebius
