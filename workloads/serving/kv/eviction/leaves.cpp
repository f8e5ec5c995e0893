// Policies that take leaves alone: a block is worth nothing without those before it, so that none goes before
// one that follows it. Among leaves: the least recent one, or, cost-aware, by GreedyDual-Size-Frequency
// (Cherkasova 1998) with blocks of one size: the key of the last victim plus uses times what computing the
// block again takes.
#include <vector>

#include "workloads/serving/kv/eviction/policies.h"
#include "workloads/serving/kv/eviction/slot_heap.h"
#include "workloads/serving/kv/eviction/slot_list.h"

namespace moebius::kv {
namespace {

class Leaves : public Eviction {
 public:
  Leaves(bool by_cost, double depth_cost) : by_cost_(by_cost), depth_cost_(depth_cost) {}

  void enter(std::int32_t slot, const BlockUse& block) override {
    if (slot >= static_cast<std::int32_t>(blocks_.size())) blocks_.resize(slot + 1);
    links_.reach(slot);
    blocks_[slot] = {block.hash, block.parent, 0, 0, true};
    slots_.insert(block.hash, slot);
    if (block.parent == block.hash) return;
    const std::int32_t count = counter(block.parent);
    if (++children_[count].number > 1) return;
    const std::int32_t parent = slots_.find(block.parent);
    if (parent >= 0 && heap_.holds(parent)) heap_.remove(parent);
  }
  void hold(std::int32_t slot) override {
    blocks_[slot].in_use = true;
    all_.remove(links_, slot);
    if (heap_.holds(slot)) heap_.remove(slot);
  }
  void free(std::int32_t slot, const BlockUse& block) override {
    Block& at = blocks_[slot];
    at.in_use = false;
    all_.push(links_, slot);
    ++at.uses;
    at.key = by_cost_ ? age_ + at.uses * (1 + depth_cost_ * block.depth) : static_cast<double>(clock_++);
    if (counters_.find(at.hash) < 0) heap_.push(slot, at.key);
  }
  void leave(std::int32_t slot) override {
    const Block& block = blocks_[slot];
    all_.remove(links_, slot);
    if (heap_.holds(slot)) heap_.remove(slot);
    slots_.erase(block.hash);
    if (block.parent != block.hash) orphan(block.parent);
  }
  std::int32_t victim() override {
    if (heap_.empty()) return all_.oldest;  // only where chains contradict each other
    age_ = heap_.least_key();
    return heap_.least();
  }
  bool prefers(const BlockUse&, std::int32_t) const override { return true; }

 private:
  struct Block {
    BlockHash hash = 0, parent = 0;
    double uses = 0, key = 0;
    bool in_use = false;
  };
  struct Counter {
    std::int32_t number = 0;
  };

  // Of blocks there that follow one with this hash, which need not be there itself.
  std::int32_t counter(BlockHash parent) {
    std::int32_t at = counters_.find(parent);
    if (at >= 0) return at;
    if (unused_.empty()) {
      at = static_cast<std::int32_t>(children_.size());
      children_.emplace_back();
    } else {
      at = unused_.back();
      unused_.pop_back();
    }
    children_[at].number = 0;
    counters_.insert(parent, at);
    return at;
  }
  void orphan(BlockHash parent) {
    const std::int32_t at = counters_.find(parent);
    if (--children_[at].number > 0) return;
    counters_.erase(parent);
    unused_.push_back(at);
    const std::int32_t slot = slots_.find(parent);
    if (slot >= 0 && !blocks_[slot].in_use) heap_.push(slot, blocks_[slot].key);
  }

  bool by_cost_;
  double depth_cost_, age_ = 0;
  std::int64_t clock_ = 0;
  SlotHeap heap_;  // leaves
  SlotLinks links_;
  SlotList all_;  // not in use
  std::vector<Block> blocks_;
  BlockTable slots_, counters_;
  std::vector<Counter> children_;
  std::vector<std::int32_t> unused_;
};

}  // namespace

std::unique_ptr<Eviction> make_leaf_first(const EvictionOptions&) {
  return std::make_unique<Leaves>(false, 0);
}

std::unique_ptr<Eviction> make_cost_aware(const EvictionOptions& options) {
  return std::make_unique<Leaves>(true, options.depth_cost);
}

}  // namespace moebius::kv
