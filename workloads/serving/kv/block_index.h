// Which blocks of keys and values are in a store, by the hash of their tokens and all before them, and which
// go when room is needed: the ones not used for longest. It knows neither clock nor bytes, so that it serves
// the simulator and the wall clock alike. Slots number the blocks of the store (tier.h). Calls take whole
// chains, the blocks of a request from the first on, and not single blocks: what keeps prefixes as a tree can
// answer them too.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "workloads/serving/kv/block_table.h"

namespace moebius::kv {

using Chain = std::span<const BlockHash>;

// Leading blocks of a chain that are in use: their slots, from the first on.
struct Lease {
  std::vector<std::int32_t> slots;

  std::int64_t blocks() const { return static_cast<std::int64_t>(slots.size()); }
};

class BlockIndex {
 public:
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int32_t>::max() - 1;

  explicit BlockIndex(std::int64_t capacity = kUnbounded);  // in blocks, at least 0

  std::int64_t match(Chain chain) const;  // leading blocks that are there
  // The leading blocks that are there stay until they are released. What `lease` held before is reused.
  void acquire(Chain chain, Lease& lease);
  // The chain is computed: blocks of the lease are free again, the others come in, as many leading ones as
  // there is room for beside what others hold. The first block was used last, the last one first, so that a
  // block never goes before one that follows it.
  void release(Chain chain, Lease& lease);

  std::int32_t slot_of(BlockHash hash) const { return table_.find(hash); }  // -1: it is not there
  std::int64_t capacity() const { return capacity_; }
  std::int64_t resident() const { return table_.size(); }
  std::int64_t in_use() const { return in_use_; }
  std::int64_t evicted() const { return evicted_; }  // so far

 private:
  struct Block {
    BlockHash hash = 0;
    std::int32_t older = -1, newer = -1;  // among those that are not in use
    std::int32_t leases = 0;
  };

  void hold(std::int32_t slot);
  void free(std::int32_t slot);
  void unlink(std::int32_t slot);
  void link_newest(std::int32_t slot);
  void insert(BlockHash hash);
  std::int32_t slot_for_new();

  std::int64_t capacity_, in_use_ = 0, evicted_ = 0;
  BlockTable table_;
  std::vector<Block> blocks_;  // by slot
  std::int32_t oldest_ = -1, newest_ = -1;
};

}  // namespace moebius::kv
