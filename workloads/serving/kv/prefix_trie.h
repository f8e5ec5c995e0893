// What BlockIndex is, least recently used, kept as a tree of runs: blocks that follow each other without a
// branch are one edge, found by the hash of its first block and then compared along. A long prompt that few
// share costs a probe an edge and not a probe a block, and eight bytes a block. Hits, and what goes, are the
// same as BlockIndex's. Whoever gives it chains makes sure that equal hashes have equal ones before them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/serving/kv/block_index.h"
#include "workloads/serving/kv/eviction/slot_list.h"

namespace moebius::kv {

// Leading blocks of a chain that are in use: up to the end of an edge.
struct TrieLease {
  std::int32_t edge = -1;  // -1: none
  std::int64_t held = 0;

  std::int64_t blocks() const { return held; }
};

class PrefixTrie {
 public:
  explicit PrefixTrie(std::int64_t capacity = BlockIndex::kUnbounded);

  // As of BlockIndex.
  std::int64_t match(Chain chain) const;
  void acquire(Chain chain, TrieLease& lease);
  void release(Chain chain, TrieLease& lease);
  std::int64_t evict(std::int64_t blocks);

  // Of whoever keeps another part of its chains: edges that are released from now on were used at this tick,
  // and when the one that goes first was.
  void set_tick(std::uint64_t tick) { tick_ = tick; }
  bool has_idle() const { return idle_.oldest >= 0; }
  std::uint64_t oldest_tick() const { return edges_[idle_.oldest].used; }

  std::int64_t capacity() const { return capacity_; }
  std::int64_t resident() const { return resident_; }
  std::int64_t in_use() const { return in_use_; }
  std::int64_t evicted() const { return evicted_; }
  std::int64_t edges() const { return first_.size(); }
  std::int64_t bytes() const;  // of memory, about: blocks, edges and the table

 private:
  struct Edge {
    std::vector<BlockHash> blocks;  // never empty
    std::int32_t parent = -1, leases = 0;
    std::uint64_t used = 0;  // tick of its last release
  };
  struct Position {
    std::int32_t edge = -1;  // the deepest one that is touched
    std::size_t within = 0;  // blocks of it
    std::int64_t blocks = 0;
  };

  Position walk(Chain chain) const;
  std::int32_t cut(const Position& at);
  void hold(std::int32_t edge);
  void free(std::int32_t edge);
  std::int32_t append(std::int32_t parent, Chain blocks);
  void drop_last(std::int32_t edge);

  std::uint64_t tick_ = 0;
  std::int64_t capacity_, resident_ = 0, in_use_ = 0, evicted_ = 0;
  BlockTable first_;  // first block of an edge -> the edge
  std::vector<Edge> edges_;
  std::vector<std::int32_t> unused_;
  SlotLinks links_;
  SlotList idle_;  // edges that are not in use
};

}  // namespace moebius::kv
