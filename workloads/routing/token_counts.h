// What the tokens of a route's sources add up to. Internal to routing.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace moebius {

// Counts rows of each slot, and, source by source, the distinct tokens for each rank and for each node.
class TokenCounts {
 public:
  struct Home {
    std::int32_t rank, node;
  };

  // `homes`: of each slot. `rows`: of each slot, from zero.
  TokenCounts(int ranks, int nodes, std::vector<Home> homes, std::int32_t* rows)
      : homes_(std::move(homes)),
        by_rank_(ranks, 0),
        by_node_(nodes, 0),
        rows_(rows),
        few_nodes_(nodes <= kFewNodes) {
    if (!few_nodes_) return;
    for (Home& home : homes_) home.node = 1 << home.node;
  }

  // A token of the source at hand; slots below zero were dropped.
  void add(const std::int32_t* slots, int active) {
    if (few_nodes_) {
      // A token's nodes are one number of few bits: one count a token, and not one a slot.
      std::uint32_t set = 0;
      add(slots, active, [&set](std::int32_t bit) { set |= static_cast<std::uint32_t>(bit); });
      ++by_set_[set];
    } else {
      const std::uint64_t now = token_ + 1;
      add(slots, active, [now, of_node = by_node_.data()](std::int32_t node) { see(of_node[node], now); });
    }
  }

  // Ends a source: its tokens for each rank and for each node.
  void take(std::int32_t* for_rank, std::int32_t* for_node) {
    for (std::uint32_t set = 0; few_nodes_ && set < 1u << by_node_.size(); ++set) {
      const std::uint32_t tokens = std::exchange(by_set_[set], 0);
      if (tokens == 0) continue;  // most sets of a source with few tokens
      for (std::size_t node = 0; node < by_node_.size(); ++node) by_node_[node] += (set >> node & 1) * tokens;
    }
    take(by_rank_, for_rank);
    take(by_node_, for_node);
  }

  std::int64_t dropped() const { return dropped_; }

 private:
  static constexpr int kFewNodes = 8;

  // A rank or node counts a token when it has not seen it before: it remembers the last one, above its count
  // in one word.
  static void see(std::uint64_t& place, std::uint64_t token) {
    place = token << 32 | static_cast<std::uint32_t>(place + (place >> 32 != token));
  }

  template <class SeeNode>
  void add(const std::int32_t* slots, int active, const SeeNode& see_node) {
    const std::uint64_t now = ++token_;  // from one
    const Home* const homes = homes_.data();
    std::uint64_t* const of_rank = by_rank_.data();
    std::int32_t* const rows = rows_;
    for (int i = 0; i < active; ++i) {
      const std::int32_t slot = slots[i];
      if (slot < 0) {
        ++dropped_;
        continue;
      }
      const Home home = homes[slot];
      ++rows[slot];
      see(of_rank[home.rank], now);
      see_node(home.node);
    }
  }

  static void take(std::vector<std::uint64_t>& places, std::int32_t* out) {
    for (std::uint64_t& place : places) {
      *out++ = static_cast<std::int32_t>(place);
      place = 0;
    }
  }

  std::vector<Home> homes_;  // with few nodes the node is its bit
  std::vector<std::uint64_t> by_rank_, by_node_;
  std::array<std::uint32_t, 1 << kFewNodes> by_set_{};  // of nodes
  std::int32_t* rows_;
  bool few_nodes_;
  std::uint64_t token_ = 0;
  std::int64_t dropped_ = 0;
};

}  // namespace moebius
