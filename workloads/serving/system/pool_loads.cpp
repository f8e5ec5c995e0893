#include "workloads/serving/system/pool_loads.h"

namespace moebius {

PoolLoads::PoolLoads(std::span<Instance> instances)
    : instances_(instances),
      changed_(instances.size()),
      loads_(instances.size()),
      requests_(instances.size()),
      tokens_(instances.size()) {
  for (std::size_t i = 0; i < instances.size(); ++i) instances[i].watch(changed_.mark(i));
}

void PoolLoads::refresh() {
  changed_.filter([&](std::size_t i) {
    const ReplicaLoad& found = instances_[i].load();
    sum_.add(found, 1);
    sum_.add(loads_[i], -1);
    loads_[i] = found;
    requests_[i] = load_of(found, ReplicaBalance::kRequests);
    tokens_[i] = load_of(found, ReplicaBalance::kTokens);
    return false;
  });
}

}  // namespace moebius
