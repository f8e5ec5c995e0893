#include "workloads/serving/kv/eviction/policies.h"
#include "workloads/serving/kv/eviction/slot_list.h"

namespace moebius::kv {
namespace {

class LeastRecent : public Eviction {
 public:
  void enter(std::int32_t slot, const BlockUse&) override { links_.reach(slot); }
  void hold(std::int32_t slot) override { list_.remove(links_, slot); }
  void free(std::int32_t slot, const BlockUse&) override { list_.push(links_, slot); }
  void leave(std::int32_t slot) override { list_.remove(links_, slot); }
  std::int32_t victim() override { return list_.oldest; }
  bool prefers(const BlockUse&, std::int32_t) const override { return true; }

 private:
  SlotLinks links_;
  SlotList list_;
};

}  // namespace

std::unique_ptr<Eviction> make_lru(const EvictionOptions&) {
  return std::make_unique<LeastRecent>();
}

}  // namespace moebius::kv
