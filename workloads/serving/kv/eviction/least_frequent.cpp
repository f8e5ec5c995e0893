// Least often used, with dynamic ageing (Arlitt et al. 2000, LFU-DA): a block's key is its uses and the key
// of the last victim when it was used last, so that what was popular once goes in the end.
#include <vector>

#include "workloads/serving/kv/eviction/policies.h"
#include "workloads/serving/kv/eviction/slot_heap.h"

namespace moebius::kv {
namespace {

class LeastFrequent : public Eviction {
 public:
  void enter(std::int32_t slot, const BlockUse&) override {
    if (slot >= static_cast<std::int32_t>(uses_.size())) uses_.resize(slot + 1);
    uses_[slot] = 0;
  }
  void hold(std::int32_t slot) override { heap_.remove(slot); }
  void free(std::int32_t slot, const BlockUse&) override { heap_.push(slot, age_ + ++uses_[slot]); }
  void leave(std::int32_t slot) override { heap_.remove(slot); }
  std::int32_t victim() override {
    if (heap_.empty()) return -1;
    age_ = heap_.least_key();
    return heap_.least();
  }
  bool prefers(const BlockUse&, std::int32_t) const override { return true; }

 private:
  SlotHeap heap_;
  std::vector<double> uses_;
  double age_ = 0;
};

}  // namespace

std::unique_ptr<Eviction> make_lfu(const EvictionOptions&) {
  return std::make_unique<LeastFrequent>();
}

}  // namespace moebius::kv
