// Which blocks are on which node and tier, as all nodes know it: every change is told to all others and is
// known `staleness` after it. What it names may have gone meanwhile.
#pragma once

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/kv/block_table.h"

namespace moebius {

enum class LowerTier : std::uint8_t { kDram, kSsd };

struct BlockPlace {
  std::int32_t node = -1;
  LowerTier tier = LowerTier::kDram;
  bool operator==(const BlockPlace&) const = default;
};

class GlobalIndex {
 public:
  explicit GlobalIndex(Time staleness) : staleness_(staleness) {}

  void add(kv::BlockHash hash, BlockPlace place, Time when);
  void remove(kv::BlockHash hash, BlockPlace place, Time when);
  // Where it is said to be, host memory before drives, then the least node behind `asking` in a circle, so
  // that not all ask the same one; node -1: nowhere but on `asking` itself.
  BlockPlace find(kv::BlockHash hash, std::int32_t asking, Time now);

  std::int64_t lookups() const { return lookups_; }
  std::int64_t updates() const { return updates_; }
  std::int64_t entries() const { return table_.size(); }  // blocks that are known

 private:
  struct Change {
    Time known;
    std::uint64_t order = 0;
    kv::BlockHash hash = 0;
    BlockPlace place;
    bool there = false;
    bool operator>(const Change& other) const {
      return std::pair(known, order) > std::pair(other.known, other.order);
    }
  };
  struct Entry {
    BlockPlace place;
    std::int32_t next = -1;
  };

  void tell(kv::BlockHash hash, BlockPlace place, Time when, bool there);
  void apply(const Change& change);
  void insert(kv::BlockHash hash, BlockPlace place);
  void erase(kv::BlockHash hash, BlockPlace place);
  std::int32_t take(std::vector<std::int32_t>& unused, std::size_t size);

  Time staleness_;
  std::priority_queue<Change, std::vector<Change>, std::greater<>> pending_;
  std::uint64_t order_ = 0;
  kv::BlockTable table_;             // to heads_
  std::vector<std::int32_t> heads_;  // first entry of a block
  std::vector<Entry> entries_;
  std::vector<std::int32_t> unused_heads_, unused_entries_;
  std::int64_t lookups_ = 0, updates_ = 0;
};

}  // namespace moebius
