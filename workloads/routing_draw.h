// How tokens choose their experts: the two draws behind a Route. Internal to routing.cpp and its tests.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/routing.h"

namespace moebius {

// SplitMix64 (Steele, Lea, Flood 2014): a counter stepped by the golden ratio through a finaliser.
class RandomStream {
 public:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

  explicit RandomStream(std::uint64_t key) : state_(key) {}

  static std::uint64_t finalise(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::uint64_t bits() { return finalise(state_ += kGolden); }
  // Uniform in [0, bound), bound >= 1; the bias of the multiplication is below bound / 2^32.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((bits() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

// Numbers 0 .. size-1 dealt without replacement and shuffled anew when all are dealt: after any number of
// deals each has come up equally often, to within one.
class Deck {
 public:
  explicit Deck(std::int32_t size);

  // Appends `count` <= size distinct numbers to `out`, each plus `offset`.
  void deal(RandomStream& random, std::int32_t count, std::int32_t offset, std::int32_t* out);

 private:
  std::vector<std::int32_t> cards_;  // [0, next_) are dealt, the rest is not, in random order as it comes
  std::int32_t next_ = 0;
};

// Balanced choices: each token is dealt active_groups groups, and from each its share of experts
// (active/active_groups; when that is not whole, the first groups of the hand give one more). One dealer goes
// through all tokens in order.
class BalancedDealer {
 public:
  BalancedDealer(const RouteSpec& spec, std::uint64_t key);

  void choose(std::int32_t* experts);  // of the next token; `active` of them, in no order

 private:
  RandomStream random_;
  Deck groups_;
  std::vector<Deck> experts_;  // per group
  std::int32_t active_, experts_per_group_;
  std::vector<std::int32_t> hand_;  // groups of this token
};

// Draws an index in proportion to its weight in constant time (Walker 1977, Vose 1991), probabilities to
// 2^-32.
class AliasTable {
 public:
  AliasTable(const double* weights, std::int32_t size);

  std::int32_t draw(RandomStream& random) const {
    const std::uint64_t bits = random.bits();
    const auto slot = static_cast<std::uint32_t>(((bits >> 32) * slots_.size()) >> 32);
    return static_cast<std::uint32_t>(bits) < slots_[slot].threshold ? static_cast<std::int32_t>(slot)
                                                                     : slots_[slot].alias;
  }

 private:
  struct Slot {
    std::uint32_t threshold;
    std::int32_t alias;
  };
  std::vector<Slot> slots_;
};

// Popular choices: a token first chooses active_groups groups one after the other, each in proportion to the
// weight of its experts among the groups still left; then, the same way, `active` experts of the chosen
// groups. So with active = 1 and one group the frequencies are exactly those of the weights.
class PopularChooser {
 public:
  struct Scratch {
    std::vector<std::uint8_t> closed;        // by expert: chosen already; all zero between calls
    std::vector<std::uint8_t> group_closed;  // by group: not among this token's
    std::vector<std::int32_t> groups;        // this token's first
  };

  PopularChooser(const RouteSpec& spec, std::uint64_t ranking_key);

  Scratch scratch() const;
  void choose(RandomStream& random, Scratch& scratch, std::int32_t* experts) const;  // of one token

 private:
  void choose_groups(RandomStream& random, Scratch& scratch) const;
  bool is_open(const Scratch& scratch, std::int32_t expert) const {
    return (scratch.closed[expert] | scratch.group_closed[group_of_[expert]]) == 0;
  }
  std::int32_t draw_open(RandomStream& random, const Scratch& scratch) const;

  std::int32_t active_, groups_, active_groups_;
  std::vector<double> weights_;  // by expert
  std::vector<double> group_weights_;
  std::vector<std::int32_t> group_of_;  // by expert
  AliasTable table_;                    // of all experts
};

}  // namespace moebius
