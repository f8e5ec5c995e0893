// How tokens choose their experts: the two draws behind a Route. Internal to routing.cpp and its tests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/routing/random_stream.h"
#include "workloads/routing/routing.h"
#include "workloads/routing/weighted_pool.h"

namespace moebius {

// Numbers 0 .. size-1 dealt without replacement and shuffled anew when all are dealt: after any number of
// deals each has come up equally often, to within one.
class Deck {
 public:
  explicit Deck(std::int32_t size);

  // Appends `count` <= size distinct numbers to `out`, each plus `offset`. Count: a number, or one that is
  // known when this is compiled.
  template <class Count>
  void deal(RandomStream& random, Count count, std::int32_t offset, std::int32_t* out) {
    const auto size = static_cast<std::int32_t>(cards_.size());
    if (next_ == size) next_ = 0;
    if (size - next_ < count) return deal_over(random, count, offset, out);
    // The deck is enough for the hand: nothing to compare.
    std::int32_t* const cards = cards_.data() + next_;
    const std::int32_t rest = size - next_;
    next_ += count;
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t at = i + static_cast<std::int32_t>(random.below(rest - i));
      const std::int32_t card = cards[at];
      cards[at] = cards[i];
      cards[i] = card;
      out[i] = card + offset;
    }
  }

 private:
  void deal_over(RandomStream& random, std::int32_t count, std::int32_t offset, std::int32_t* out);

  std::vector<std::int32_t> cards_;  // [0, next_) are dealt, the rest is not, in random order as it comes
  std::int32_t next_ = 0;
};

// Balanced choices: each token is dealt active_groups groups, and from each its share of experts:
// active/active_groups, or, when that is not whole, the whole numbers around it in turn. One dealer goes
// through all tokens in order.
class BalancedDealer {
 public:
  BalancedDealer(const RouteSpec& spec, std::uint64_t key);

  void choose(std::int32_t* experts);  // of the next token; `active` of them, in no order

 private:
  void deal_in_turn();
  void choose_evenly(std::int32_t* experts);
  template <class Count>
  void give_each(RandomStream& random, Count count, std::int32_t* experts);

  RandomStream random_;
  Deck groups_;
  std::vector<Deck> experts_;  // per group
  std::int32_t active_, experts_per_group_;
  std::int32_t each_;                // experts that a group of the hand gives where shares are whole
  std::vector<std::int32_t> hand_;   // groups of this token
  std::vector<std::int32_t> order_;  // of all groups, dealt in turn; empty when shares are whole
  std::int32_t turn_ = 0;            // tokens dealt in this order
  std::int32_t shift_ = 0;           // which groups of the hand give more
};

// Which slot of an expert computes a token: by the slots' shares, a number of its own for each token and
// expert.
class SlotChooser {
 public:
  SlotChooser(const ExpertSlots& slots, int experts, std::uint64_t key);
  std::int32_t slot_of(std::int32_t expert, int source, std::int32_t token) const;  // `token` of its source
  // The slots of an expert one after the other, whatever their shares.
  std::int32_t slot_in_turn(std::int32_t expert, std::int64_t number) const {
    return slots_[first_[expert] + static_cast<std::int32_t>(number % (first_[expert + 1] - first_[expert]))];
  }

 private:
  std::uint64_t key_;
  std::vector<std::int32_t> first_;  // [experts + 1] into the next two
  std::vector<std::int32_t> slots_;  // by expert
  std::vector<double> ends_;         // of the shares of an expert's slots up to this one
};

// Popular choices: a token first chooses active_groups groups one after the other, each in proportion to the
// weight of its experts among the groups still left; then, the same way, `active` experts of the chosen
// groups. So with active = 1 and one group the frequencies are exactly those of the weights. Where the sets
// of groups are few, a token draws its set at once, with the chance that choosing one after the other gives
// it.
class PopularChooser {
 public:
  PopularChooser(const RouteSpec& spec, std::uint64_t ranking_key);

  const std::vector<WeightedItem>& experts() const {
    return experts_;
  }  // weights of 2^60 together, by expert
  bool chooses_sets() const { return !choice_of_groups_; }

  struct Scratch {
    Taken groups, experts;
    std::vector<OpenPool> hand;        // what this token draws from
    std::vector<std::int32_t> chosen;  // groups of this token
    std::vector<std::int32_t> tokens;  // of each set of groups
  };
  Scratch scratch() const;
  void choose(RandomStream& random, Scratch& scratch, std::int32_t* experts) const;  // of one token

  // The same of many, visit(experts) for each. They come by their sets of groups: what a set draws from then
  // stays in the nearest cache.
  template <class Visit>
  void choose_for_each(RandomStream& random, std::int32_t tokens, Scratch& scratch, std::int32_t* experts,
                       Visit&& visit) const {
    if (choice_of_groups_) {
      for (; tokens > 0; --tokens) {
        choose(random, scratch, experts);
        visit(experts);
      }
      return;
    }
    draw_sets(random, tokens, scratch);
    for (std::size_t set = 0; set < pools_.size(); ++set) {
      for (std::int32_t i = 0; i < scratch.tokens[set]; ++i) {
        choose_of(pools_[set], random, scratch, experts);
        visit(experts);
      }
    }
  }

 private:
  void make_pools(const std::vector<std::uint32_t>& sets);
  std::vector<WeightedItem> experts_of(std::int32_t group) const;
  void draw_sets(RandomStream& random, std::int32_t tokens, Scratch& scratch) const;
  void choose_groups(RandomStream& random, Scratch& scratch) const;
  void choose_of(const WeightedPool& pool, RandomStream& random, Scratch& scratch,
                 std::int32_t* experts) const {
    scratch.experts.next_token();
    if (pool.heads().empty()) {  // nothing to weigh
      take_of_rest(random, pool.rest(), scratch.experts, active_, experts);
    } else {
      scratch.hand.assign(1, OpenPool(pool));
      take_items(random, scratch.hand, scratch.experts, active_, experts);
    }
  }

  std::int32_t active_, active_groups_, experts_per_group_;
  std::vector<WeightedItem> experts_, groups_;
  std::vector<WeightedPool> pools_;  // one for each group, or, where they are few, for each set of groups
  AliasTable sets_;                  // of the pools, when there is one for each set
  std::optional<WeightedPool> choice_of_groups_;  // otherwise a token takes its groups one after the other
};

}  // namespace moebius
