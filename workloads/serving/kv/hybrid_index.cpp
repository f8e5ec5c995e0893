#include "workloads/serving/kv/hybrid_index.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {

HybridIndex::HybridIndex(std::int64_t capacity, std::int64_t head_blocks)
    : capacity_(capacity), head_blocks_(static_cast<std::size_t>(head_blocks)) {
  CHECK(capacity >= 0 && capacity <= BlockIndex::kUnbounded && head_blocks >= 0,
        fmt::format("capacity={} head_blocks={}", capacity, head_blocks));
}

std::int64_t HybridIndex::match(Chain chain) const {
  const Chain head = head_of(chain);
  std::int64_t found = 0;
  for (const BlockHash hash : head) {
    if (heads_.find(hash) < 0) return found;
    ++found;
  }
  return found + tails_.match(tail_of(chain));
}

void HybridIndex::acquire(Chain chain, HybridLease& lease) {
  const Chain head = head_of(chain);
  lease.slots.clear();
  lease.tail = {};
  for (const BlockHash hash : head) {
    const std::int32_t slot = heads_.find(hash);
    if (slot < 0) return;
    hold(slot);
    lease.slots.push_back(slot);
  }
  tails_.acquire(tail_of(chain), lease.tail);
}

void HybridIndex::hold(std::int32_t slot) {
  if (slots_[slot].leases++ > 0) return;
  idle_.remove(links_, slot);
  ++heads_in_use_;
}

void HybridIndex::free(std::int32_t slot) {
  if (--slots_[slot].leases > 0) return;
  slots_[slot].used = tick_;
  idle_.push(links_, slot);
  --heads_in_use_;
}

// In use, once.
std::int32_t HybridIndex::place(BlockHash hash) {
  auto slot = static_cast<std::int32_t>(slots_.size());
  if (unused_.empty()) {
    slots_.emplace_back();
    links_.reach(slot);
  } else {
    slot = unused_.back();
    unused_.pop_back();
  }
  slots_[slot] = {hash, 1, 0};
  heads_.insert(hash, slot);
  ++heads_in_use_;
  return slot;
}

// The tail was used last before the head was: a block never goes before one that follows it.
void HybridIndex::give_back(Chain chain, HybridLease& lease) {
  tails_.release(tail_of(chain), lease.tail);
  for (std::size_t i = lease.slots.size(); i-- > 0;) free(lease.slots[i]);
  lease.slots.clear();
}

// What others brought in meanwhile is held too, and what had to go is gone before newcomers come.
void HybridIndex::release(Chain chain, HybridLease& lease) {
  HybridLease whole;
  acquire(chain, whole);
  const std::int64_t found = whole.blocks();
  tails_.set_tick(++tick_);
  give_back(chain.first(lease.blocks()), lease);
  const std::int64_t missing = static_cast<std::int64_t>(chain.size()) - found;
  const std::int64_t admitted = std::max<std::int64_t>(0, std::min(missing, capacity_ - in_use()));
  evict(resident() + admitted - capacity_);
  const Chain kept = chain.first(found + admitted);
  for (std::size_t i = whole.slots.size(); i < head_of(kept).size(); ++i)
    whole.slots.push_back(place(kept[i]));
  give_back(kept, whole);
}

bool HybridIndex::head_goes_first() const {
  if (idle_.oldest < 0) return false;
  return !tails_.has_idle() || slots_[idle_.oldest].used < tails_.oldest_tick();
}

std::int64_t HybridIndex::evict(std::int64_t blocks) {
  std::int64_t gone = 0;
  for (; gone < blocks && resident() > in_use(); ++gone, ++evicted_) {
    if (!head_goes_first()) {
      tails_.evict(1);
      continue;
    }
    const std::int32_t slot = idle_.oldest;
    idle_.remove(links_, slot);
    heads_.erase(slots_[slot].hash);
    unused_.push_back(slot);
  }
  return gone;
}

std::int64_t HybridIndex::bytes() const {
  constexpr std::int64_t kCell = 24;  // of the table: 16 bytes a cell, two in three in use
  const std::int64_t head = static_cast<std::int64_t>(sizeof(Head)) + 8 + kCell;
  return heads_.size() * head + tails_.bytes();
}

}  // namespace moebius::kv
