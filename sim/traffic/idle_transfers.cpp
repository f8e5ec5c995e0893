#include "sim/traffic/idle_transfers.h"

#include <mutex>
#include <unordered_set>

#include "sim/traffic/transfer_plans.h"

namespace moebius {
namespace {

class IdleTransfers : public TransferTimes {
 public:
  IdleTransfers(const Cluster& cluster, const Layout& layout) : layout_(layout), plans_(cluster, layout_) {}

  double alone(const Fragment& fragment, int index, int rank_class) override {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const TransferPlan> plan = plans_.plan(fragment, index, rank_class);
    const double seconds = plan->alone();
    if (!is_host_copy(fragment.ops[index].kind)) kept_.insert(std::move(plan));
    return seconds;
  }

 private:
  const Layout layout_;
  std::mutex mutex_;  // of what follows
  TransferPlans plans_;
  std::unordered_set<std::shared_ptr<const TransferPlan>> kept_;  // or they would be built anew
};

}  // namespace

std::unique_ptr<TransferTimes> idle_transfers(const Cluster& cluster, const Layout& layout) {
  return std::make_unique<IdleTransfers>(cluster, layout);
}

}  // namespace moebius
