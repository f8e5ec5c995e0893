#include "workloads/serving/kv/block_index.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {

BlockIndex::BlockIndex(std::int64_t capacity)
    : BlockIndex(capacity, make_eviction(EvictionKind::kLru, {.capacity = capacity})) {}

BlockIndex::BlockIndex(std::int64_t capacity, std::unique_ptr<Eviction> eviction)
    : capacity_(capacity), eviction_(std::move(eviction)) {
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

// Newcomers are in use until all have come in, so that none takes another one's place.
void BlockIndex::extend(Chain chain, Lease& lease, std::span<const std::int64_t> next) {
  CHECK(lease.blocks() <= static_cast<std::int64_t>(chain.size()),
        fmt::format("a lease of {} blocks for a chain of {}", lease.blocks(), chain.size()));
  CHECK(next.empty() || next.size() == chain.size(), fmt::format("{} uses to come", next.size()));
  for (std::size_t i = lease.slots.size(); i < chain.size(); ++i) {
    std::int32_t slot = table_.find(chain[i]);
    if (slot >= 0) {
      hold(slot);
    } else {
      slot = place({.hash = chain[i],
                    .parent = chain[i == 0 ? 0 : i - 1],
                    .depth = static_cast<std::int32_t>(i),
                    .next = next.empty() ? BlockUse::kNever : next[i]},
                   0);
    }
    if (slot < 0) break;
    lease.slots.push_back(slot);
  }
}

void BlockIndex::release(Chain chain, Lease& lease, std::span<const std::int64_t> next) {
  extend(chain, lease, next);
  for (std::size_t i = lease.slots.size(); i-- > 0;)
    free(lease.slots[i], next.empty() ? BlockUse::kNever : next[i]);
  lease.slots.clear();
}

BlockIndex::Found BlockIndex::find(Chain chain) const {
  Found found;
  for (const BlockHash hash : chain) {
    const std::int32_t slot = table_.find(hash);
    if (slot < 0) break;
    ++found.blocks;
    found.idle += in_use(slot) ? 0 : 1;
  }
  return found;
}

void BlockIndex::hold(std::int32_t slot) {
  if (blocks_[slot].leases++ > 0) return;
  eviction_->hold(slot);
  ++in_use_;
}

void BlockIndex::free(std::int32_t slot, std::int64_t next) {
  Block& block = blocks_[slot];
  CHECK(block.leases > 0, fmt::format("slot {} is not in use", slot));
  if (--block.leases > 0) return;
  ++block.uses;
  eviction_->free(slot, {block.hash, block.parent, block.depth, next});
  --in_use_;
}

// In use, once.
std::int32_t BlockIndex::place(const BlockUse& block, std::int32_t uses) {
  const std::int32_t slot = slot_for(block);
  if (slot < 0) return -1;
  blocks_[slot] = {block.hash, block.parent, block.depth, 1, uses};
  table_.insert(block.hash, slot);
  eviction_->enter(slot, block);
  ++in_use_;
  return slot;
}

std::int32_t BlockIndex::insert(const EvictedBlock& block) {
  const std::int32_t slot =
      place({block.hash, block.parent, block.depth, BlockUse::kNever}, block.uses - 1);  // free() adds one
  if (slot >= 0) free(slot);
  return slot;
}

EvictedBlock BlockIndex::block(std::int32_t slot) const {
  const Block& block = blocks_[slot];
  return {block.hash, block.parent, block.depth, block.uses};
}

std::int64_t BlockIndex::bytes() const {
  constexpr std::int64_t kCell = 24, kLinks = 8;  // 16 bytes a cell of the table, two in three in use
  return resident() * (static_cast<std::int64_t>(sizeof(Block)) + kCell + kLinks);
}

void BlockIndex::take_out(std::int32_t slot) {
  eviction_->leave(slot);
  table_.erase(blocks_[slot].hash);
  empty_.push_back(slot);
}

void BlockIndex::evict_victim(std::int32_t slot) {
  ++evicted_;
  if (keeps_evicted_) log_.push_back(block(slot));
  take_out(slot);
}

std::int64_t BlockIndex::evict(std::int64_t blocks) {
  std::int64_t gone = 0;
  for (; gone < blocks && resident() > in_use_; ++gone) evict_victim(eviction_->victim());
  return gone;
}

std::int32_t BlockIndex::slot_for(const BlockUse& newcomer) {
  if (resident() >= capacity_) {
    if (resident() == in_use_) return -1;
    const std::int32_t victim = eviction_->victim();
    if (!eviction_->prefers(newcomer, victim)) return -1;
    evict_victim(victim);
  }
  if (empty_.empty()) {
    blocks_.emplace_back();
    return static_cast<std::int32_t>(blocks_.size()) - 1;
  }
  const std::int32_t slot = empty_.back();
  empty_.pop_back();
  return slot;
}

}  // namespace moebius::kv
