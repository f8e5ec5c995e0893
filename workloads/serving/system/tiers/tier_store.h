// Blocks of one tier of one node: which are there, from when on, and which of them were fetched ahead and not
// used yet. The capacity is whole blocks of bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/kv/block_index.h"

namespace moebius {

class TierStore {
 public:
  TierStore(std::int64_t blocks, std::unique_ptr<kv::Eviction> eviction)
      : index_(blocks, std::move(eviction)) {
    index_.keep_evicted();
  }

  std::int32_t find(kv::BlockHash hash) const { return index_.slot_of(hash); }
  Time ready(std::int32_t slot) const { return facts_[slot].ready; }
  void use(std::int32_t slot) {
    index_.hold(slot);
    index_.free(slot);
  }
  void hold(std::int32_t slot) { index_.hold(slot); }
  void free(std::int32_t slot) { index_.free(slot); }
  bool in_use(std::int32_t slot) const { return index_.in_use(slot); }
  kv::EvictedBlock block(std::int32_t slot) const { return index_.block(slot); }

  // It is not there; -1: no room. What had to go is in gone() until the next call.
  std::int32_t insert(const kv::EvictedBlock& block, Time ready, bool ahead) {
    index_.forget_evicted();
    const std::int32_t slot = index_.insert(block);
    if (slot < 0) return slot;
    const bool replaced = !index_.evicted_blocks().empty();  // in the slot of the one that went
    gone_ahead_ = replaced && facts_[slot].ahead;
    gone_ready_ = replaced ? facts_[slot].ready : Time{};
    if (slot >= static_cast<std::int32_t>(facts_.size())) facts_.resize(slot + 1);
    facts_[slot] = {ready, ahead};
    peak_ = std::max(peak_, index_.resident());
    return slot;
  }
  const std::vector<kv::EvictedBlock>& gone() const { return index_.evicted_blocks(); }
  bool gone_ahead() const { return gone_ahead_; }  // it was fetched ahead and never used
  Time gone_ready() const { return gone_ready_; }
  void take_out(std::int32_t slot) { index_.take_out(slot); }

  // Used for the first time since it was fetched ahead.
  bool first_use_ahead(std::int32_t slot) { return std::exchange(facts_[slot].ahead, false); }
  std::int64_t never_used() const {
    return std::count_if(facts_.begin(), facts_.end(), [](const Facts& facts) { return facts.ahead; });
  }
  std::int64_t resident() const { return index_.resident(); }
  std::int64_t capacity() const { return index_.capacity(); }
  std::int64_t peak() const { return peak_; }
  std::int64_t evicted() const { return index_.evicted(); }

 private:
  struct Facts {
    Time ready;
    bool ahead = false;
  };
  kv::BlockIndex index_;
  std::vector<Facts> facts_;  // by slot
  bool gone_ahead_ = false;
  Time gone_ready_;
  std::int64_t peak_ = 0;
};

}  // namespace moebius
