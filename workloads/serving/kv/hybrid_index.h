// BlockIndex by two structures, least recently used: the leading blocks of a chain by their hashes, what is
// behind them in a tree of runs. Short contexts cost a probe a block and split no edge; of long ones all that
// nobody shares is an edge. Both parts are one cache, with one order of what goes: hits are those of either
// structure alone.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/serving/kv/prefix_trie.h"

namespace moebius::kv {

// Leading blocks that are in use: slots of the head, an edge behind it.
struct HybridLease {
  std::vector<std::int32_t> slots;
  TrieLease tail;

  std::int64_t blocks() const { return static_cast<std::int64_t>(slots.size()) + tail.blocks(); }
};

class HybridIndex {
 public:
  HybridIndex(std::int64_t capacity, std::int64_t head_blocks);  // of a chain, that are kept by hash

  // As of BlockIndex.
  std::int64_t match(Chain chain) const;
  void acquire(Chain chain, HybridLease& lease);
  void release(Chain chain, HybridLease& lease);
  std::int64_t evict(std::int64_t blocks);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t resident() const { return heads_.size() + tails_.resident(); }
  std::int64_t in_use() const { return heads_in_use_ + tails_.in_use(); }
  std::int64_t evicted() const { return evicted_; }
  std::int64_t bytes() const;  // of memory, about: as of PrefixTrie

 private:
  struct Head {
    BlockHash hash = 0;
    std::int32_t leases = 0;
    std::uint64_t used = 0;  // tick of its last release
  };

  Chain head_of(Chain chain) const { return chain.first(std::min<std::size_t>(chain.size(), head_blocks_)); }
  Chain tail_of(Chain chain) const { return chain.subspan(head_of(chain).size()); }
  void hold(std::int32_t slot);
  void free(std::int32_t slot);
  std::int32_t place(BlockHash hash);
  void give_back(Chain chain, HybridLease& lease);
  bool head_goes_first() const;

  std::int64_t capacity_;
  std::size_t head_blocks_;
  BlockTable heads_;  // to slots
  std::vector<Head> slots_;
  std::vector<std::int32_t> unused_;
  SlotLinks links_;
  SlotList idle_;
  std::int64_t heads_in_use_ = 0, evicted_ = 0;
  PrefixTrie tails_;
  std::uint64_t tick_ = 0;
};

}  // namespace moebius::kv
