// Which blocks of keys and values are in a store, by the hash of their tokens and all before them, and which
// go when room is needed: as a policy says, by default the ones not used for longest. It knows neither clock
// nor bytes, so that it serves the simulator and the wall clock alike. Slots number the blocks of the store
// (tier.h). Calls take whole chains, the blocks of a request from the first on, and not single blocks: what
// keeps prefixes as a tree can answer them too.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "workloads/serving/kv/block_table.h"
#include "workloads/serving/kv/eviction/eviction.h"

namespace moebius::kv {

using Chain = std::span<const BlockHash>;

// Leading blocks of a chain that are in use: their slots, from the first on.
struct Lease {
  std::vector<std::int32_t> slots;

  std::int64_t blocks() const { return static_cast<std::int64_t>(slots.size()); }
};

// A block that went, as whoever keeps it elsewhere must know it.
struct EvictedBlock {
  BlockHash hash = 0, parent = 0;  // parent: of the block before it; its own of a first one
  std::int32_t depth = 0;          // blocks before it
  std::int32_t uses = 0;           // that ended while it was there
};

class BlockIndex {
 public:
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int32_t>::max() - 1;

  explicit BlockIndex(std::int64_t capacity = kUnbounded);  // in blocks, at least 0; least recently used go
  BlockIndex(std::int64_t capacity, std::unique_ptr<Eviction> eviction);

  std::int64_t match(Chain chain) const;  // leading blocks that are there
  struct Found {
    std::int64_t blocks = 0, idle = 0;  // leading ones that are there, and of them nobody's
  };
  Found find(Chain chain) const;
  // The leading blocks that are there stay until they are released. What `lease` held before is reused.
  void acquire(Chain chain, Lease& lease);
  // The chain is computed, but still in use: the blocks that are not of the lease come in and are, as many
  // leading ones as there is room for beside what others hold. `next`: when each block is used again, of who
  // knows it.
  void extend(Chain chain, Lease& lease, std::span<const std::int64_t> next = {});
  // Extended, and that use has ended: all its blocks are free again. The first block was used last, the last
  // one first, so that a block never goes before one that follows it.
  void release(Chain chain, Lease& lease, std::span<const std::int64_t> next = {});

  // Takes out so many blocks that are not in use; returns how many there were.
  std::int64_t evict(std::int64_t blocks);
  // From now on what goes is written down, for take_evicted().
  void keep_evicted() { keeps_evicted_ = true; }
  const std::vector<EvictedBlock>& evicted_blocks() const { return log_; }  // since forget_evicted()
  void forget_evicted() { log_.clear(); }

  std::int32_t slot_of(BlockHash hash) const { return table_.find(hash); }  // -1: it is not there
  std::int32_t uses_of(std::int32_t slot) const { return blocks_[slot].uses; }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t resident() const { return table_.size(); }
  std::int64_t in_use() const { return in_use_; }
  std::int64_t evicted() const { return evicted_; }  // so far, for others; not what was taken out
  std::int64_t bytes() const;                        // of memory, about: as of PrefixTrie

  // Single blocks, for stores below others. hold() and free() as of a lease; insert(): it is not there, and
  // comes in unused; its slot, or -1 where all is in use or the policy prefers what is there; take_out(): it
  // is there and not in use.
  void hold(std::int32_t slot);
  void free(std::int32_t slot) { free(slot, BlockUse::kNever); }
  std::int32_t insert(const EvictedBlock& block);
  void take_out(std::int32_t slot);
  bool in_use(std::int32_t slot) const { return blocks_[slot].leases > 0; }
  EvictedBlock block(std::int32_t slot) const;

 private:
  struct Block {
    BlockHash hash = 0, parent = 0;
    std::int32_t depth = 0, leases = 0, uses = 0;
  };

  void free(std::int32_t slot, std::int64_t next);
  std::int32_t place(const BlockUse& block, std::int32_t uses);
  void evict_victim(std::int32_t slot);
  std::int32_t slot_for(const BlockUse& newcomer);

  std::int64_t capacity_, in_use_ = 0, evicted_ = 0;
  BlockTable table_;
  std::vector<Block> blocks_;        // by slot
  std::vector<std::int32_t> empty_;  // slots without a block, behind evict()
  std::unique_ptr<Eviction> eviction_;
  bool keeps_evicted_ = false;
  std::vector<EvictedBlock> log_;
};

}  // namespace moebius::kv
