// What the tokens of a route's sources add up to. Internal to routing.cpp.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/routing/bit_counts.h"

namespace moebius {

// Counts rows of each slot, and, source by source, the distinct tokens for each rank and for each node.
class RouteCounts {
 public:
  struct Home {
    std::int32_t rank, node;
  };

  // `homes`: of each slot. `rows`: of each slot, from zero.
  RouteCounts(int ranks, int nodes, const std::vector<Home>& homes, std::int32_t* rows)
      : ranks_(ranks), nodes_(nodes), rows_(rows) {
    if (ranks <= BitCounts::kBits && nodes <= BitCounts::kBits) {
      for (const Home& home : homes)
        bits_.push_back({std::uint64_t{1} << home.rank, std::uint64_t{1} << home.node});
    } else {
      homes_ = homes;
      by_rank_.resize(ranks);
      by_node_.resize(nodes);
    }
  }

  // A token of the source at hand; slots below zero were dropped.
  void add(const std::int32_t* slots, int active) {
    if (bits_.empty()) {
      const std::uint64_t now = ++token_;  // from one
      visit(
          slots, active,
          [now, homes = homes_.data(), ranks = by_rank_.data(), nodes = by_node_.data()](std::int32_t slot) {
            see(ranks[homes[slot].rank], now);
            see(nodes[homes[slot].node], now);
          });
    } else {
      Bits seen;
      visit(slots, active, [&seen, bits = bits_.data()](std::int32_t slot) {
        seen.rank |= bits[slot].rank;
        seen.node |= bits[slot].node;
      });
      of_rank_.add(seen.rank);
      of_node_.add(seen.node);
    }
  }

  // Ends a source: its tokens for each rank and for each node.
  void take(std::int32_t* for_rank, std::int32_t* for_node) {
    if (bits_.empty()) {
      take(by_rank_, for_rank);
      take(by_node_, for_node);
    } else {
      of_rank_.take(ranks_, for_rank);
      of_node_.take(nodes_, for_node);
    }
  }

  std::int64_t dropped() const { return dropped_; }

 private:
  struct Bits {
    std::uint64_t rank = 0, node = 0;
  };

  // A rank or node counts a token when it has not seen it before: it remembers the last one, above its count
  // in one word.
  static void see(std::uint64_t& place, std::uint64_t token) {
    place = token << 32 | static_cast<std::uint32_t>(place + (place >> 32 != token));
  }

  template <class Visit>
  void visit(const std::int32_t* slots, int active, const Visit& visit_slot) {
    std::int32_t* const rows = rows_;
    for (int i = 0; i < active; ++i) {
      const std::int32_t slot = slots[i];
      if (slot < 0) {
        ++dropped_;
        continue;
      }
      ++rows[slot];
      visit_slot(slot);
    }
  }

  static void take(std::vector<std::uint64_t>& places, std::int32_t* out) {
    for (std::uint64_t& place : places) {
      *out++ = static_cast<std::int32_t>(place);
      place = 0;
    }
  }

  int ranks_, nodes_;
  std::int32_t* rows_;
  std::int64_t dropped_ = 0;

  // Where ranks and nodes are few, a token's are one word each.
  std::vector<Bits> bits_;  // of each slot
  BitCounts of_rank_, of_node_;

  // Otherwise each has a place.
  std::vector<Home> homes_;  // of each slot
  std::vector<std::uint64_t> by_rank_, by_node_;
  std::uint64_t token_ = 0;
};

}  // namespace moebius
