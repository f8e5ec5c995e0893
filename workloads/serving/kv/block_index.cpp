#include "workloads/serving/kv/block_index.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {

BlockIndex::BlockIndex(std::int64_t capacity) : capacity_(capacity), table_(capacity) {
  CHECK(capacity >= 0 && capacity <= kUnbounded, fmt::format("capacity={}", capacity));
}

std::int64_t BlockIndex::match(Chain chain) const {
  std::int64_t found = 0;
  for (const BlockHash hash : chain) {
    if (table_.find(hash) < 0) break;
    ++found;
  }
  return found;
}

void BlockIndex::acquire(Chain chain, Lease& lease) {
  lease.slots.clear();
  for (const BlockHash hash : chain) {
    const std::int32_t slot = table_.find(hash);
    if (slot < 0) break;
    hold(slot);
    lease.slots.push_back(slot);
  }
}

void BlockIndex::release(Chain chain, Lease& lease) {
  CHECK(lease.blocks() <= static_cast<std::int64_t>(chain.size()),
        fmt::format("a lease of {} blocks for a chain of {}", lease.blocks(), chain.size()));
  // What others brought in meanwhile is held too: making room for the rest must not take it.
  for (std::size_t i = lease.slots.size(); i < chain.size(); ++i) {
    const std::int32_t slot = table_.find(chain[i]);
    if (slot < 0) break;
    hold(slot);
    lease.slots.push_back(slot);
  }
  const std::int64_t held = lease.blocks();
  const std::int64_t admitted = std::min(static_cast<std::int64_t>(chain.size()), held + capacity_ - in_use_);
  for (std::int64_t i = admitted - 1; i >= held; --i) insert(chain[i]);
  for (std::int64_t i = held - 1; i >= 0; --i) free(lease.slots[i]);
  lease.slots.clear();
}

void BlockIndex::hold(std::int32_t slot) {
  if (blocks_[slot].leases++ > 0) return;
  unlink(slot);
  ++in_use_;
}

void BlockIndex::free(std::int32_t slot) {
  CHECK(blocks_[slot].leases > 0, fmt::format("slot {} is not in use", slot));
  if (--blocks_[slot].leases > 0) return;
  link_newest(slot);
  --in_use_;
}

void BlockIndex::unlink(std::int32_t slot) {
  const auto [older, newer] = std::pair(blocks_[slot].older, blocks_[slot].newer);
  (older < 0 ? oldest_ : blocks_[older].newer) = newer;
  (newer < 0 ? newest_ : blocks_[newer].older) = older;
}

void BlockIndex::link_newest(std::int32_t slot) {
  blocks_[slot].older = newest_;
  blocks_[slot].newer = -1;
  (newest_ < 0 ? oldest_ : blocks_[newest_].newer) = slot;
  newest_ = slot;
}

// A chain that names a block twice has it once.
void BlockIndex::insert(BlockHash hash) {
  const std::int32_t there = table_.find(hash);
  if (there >= 0) {
    if (blocks_[there].leases > 0) return;
    unlink(there);
    return link_newest(there);
  }
  const std::int32_t slot = slot_for_new();
  blocks_[slot].hash = hash;
  table_.insert(hash, slot);
  link_newest(slot);
}

std::int32_t BlockIndex::slot_for_new() {
  if (static_cast<std::int64_t>(blocks_.size()) < capacity_) {
    blocks_.emplace_back();
    return static_cast<std::int32_t>(blocks_.size()) - 1;
  }
  const std::int32_t slot = oldest_;
  CHECK(slot >= 0, fmt::format("all {} blocks are in use", capacity_));
  unlink(slot);
  table_.erase(blocks_[slot].hash);
  ++evicted_;
  return slot;
}

}  // namespace moebius::kv
