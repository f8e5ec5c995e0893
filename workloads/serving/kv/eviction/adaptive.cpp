// After ARC (Megiddo and Modha 2003): blocks used once and blocks used again have a list each; hashes of
// those that went lately are remembered, and a miss among them moves the share that the first list may take.
// Blocks in use are in neither list.
#include <algorithm>
#include <vector>

#include "workloads/serving/kv/eviction/policies.h"
#include "workloads/serving/kv/eviction/slot_list.h"

namespace moebius::kv {
namespace {

// Hashes of blocks that went, the latest ones.
class Ghosts {
 public:
  std::int64_t size() const { return list_.size; }
  bool take(BlockHash hash) {
    const std::int32_t at = table_.find(hash);
    if (at < 0) return false;
    drop(at);
    return true;
  }
  void add(BlockHash hash) {
    if (table_.find(hash) >= 0) take(hash);
    std::int32_t at = static_cast<std::int32_t>(hashes_.size());
    if (free_.empty()) {
      hashes_.emplace_back();
    } else {
      at = free_.back();
      free_.pop_back();
    }
    hashes_[at] = hash;
    links_.reach(at);
    list_.push(links_, at);
    table_.insert(hash, at);
  }
  void trim(std::int64_t most) {
    while (list_.size > std::max<std::int64_t>(0, most)) drop(list_.oldest);
  }

 private:
  void drop(std::int32_t at) {
    table_.erase(hashes_[at]);
    list_.remove(links_, at);
    free_.push_back(at);
  }

  BlockTable table_;
  std::vector<BlockHash> hashes_;
  std::vector<std::int32_t> free_;
  SlotLinks links_;
  SlotList list_;
};

class Adaptive : public Eviction {
 public:
  void enter(std::int32_t slot, const BlockUse& block) override {
    links_.reach(slot);
    if (slot >= static_cast<std::int32_t>(blocks_.size())) blocks_.resize(slot + 1);
    blocks_[slot] = {block.hash, recall(block.hash)};
    most_ = std::max(most_, ++there_);
  }
  void hold(std::int32_t slot) override {
    list_of(slot).remove(links_, slot);
    blocks_[slot].again = true;
  }
  void free(std::int32_t slot, const BlockUse&) override { list_of(slot).push(links_, slot); }
  void leave(std::int32_t slot) override {
    list_of(slot).remove(links_, slot);
    (blocks_[slot].again ? frequent_ghosts_ : recent_ghosts_).add(blocks_[slot].hash);
    recent_ghosts_.trim(most_ - recent_.size);
    frequent_ghosts_.trim(2 * most_ - recent_.size - recent_ghosts_.size() - frequent_.size);
    --there_;
  }
  std::int32_t victim() override {
    const bool from_recent =
        recent_.size > 0 && (static_cast<double>(recent_.size) > share_ || frequent_.size == 0);
    return from_recent ? recent_.oldest : frequent_.oldest;
  }
  bool prefers(const BlockUse&, std::int32_t) const override { return true; }

 private:
  struct Block {
    BlockHash hash = 0;
    bool again = false;  // used more than once, counting what is remembered
  };

  SlotList& list_of(std::int32_t slot) { return blocks_[slot].again ? frequent_ : recent_; }

  bool recall(BlockHash hash) {
    const double recent = static_cast<double>(recent_ghosts_.size());
    const double frequent = static_cast<double>(frequent_ghosts_.size());
    if (recent_ghosts_.take(hash)) {
      share_ = std::min(static_cast<double>(most_), share_ + std::max(1.0, frequent / recent));
      return true;
    }
    if (!frequent_ghosts_.take(hash)) return false;
    share_ = std::max(0.0, share_ - std::max(1.0, recent / frequent));
    return true;
  }

  SlotLinks links_;
  SlotList recent_, frequent_;
  Ghosts recent_ghosts_, frequent_ghosts_;
  std::vector<Block> blocks_;
  double share_ = 0;                   // blocks that those used once may take
  std::int64_t there_ = 0, most_ = 0;  // blocks, and the most there ever were: the capacity
};

}  // namespace

std::unique_ptr<Eviction> make_arc(const EvictionOptions&) {
  return std::make_unique<Adaptive>();
}

}  // namespace moebius::kv
