// Belady 1966: what is used again last goes, and a newcomer that is used later still does not come in. Blocks
// of a chain are used with all before them, so that what stays are whole beginnings of chains and the hits
// are the most that any policy has.
#include <vector>

#include "workloads/serving/kv/eviction/policies.h"
#include "workloads/serving/kv/eviction/slot_heap.h"

namespace moebius::kv {
namespace {

class FurthestUse : public Eviction {
 public:
  void enter(std::int32_t slot, const BlockUse&) override {
    if (slot >= static_cast<std::int32_t>(key_.size())) key_.resize(slot + 1);
  }
  void hold(std::int32_t slot) override { heap_.remove(slot); }
  void free(std::int32_t slot, const BlockUse& block) override {
    heap_.push(slot, key_[slot] = key_of(block));
  }
  void leave(std::int32_t slot) override { heap_.remove(slot); }
  std::int32_t victim() override { return heap_.empty() ? -1 : heap_.least(); }
  bool prefers(const BlockUse& newcomer, std::int32_t victim) const override {
    return key_of(newcomer) > key_[victim];
  }

 private:
  // Of blocks used again by the same request, the last of the chain goes first.
  static double key_of(const BlockUse& block) {
    constexpr double kMostDepth = 1 << 20;
    if (block.next == BlockUse::kNever) return -1e300;
    return -static_cast<double>(block.next) - block.depth / kMostDepth;
  }

  SlotHeap heap_;
  std::vector<double> key_;
};

}  // namespace

std::unique_ptr<Eviction> make_belady(const EvictionOptions&) {
  return std::make_unique<FurthestUse>();
}

}  // namespace moebius::kv
