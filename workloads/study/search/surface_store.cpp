#include "workloads/study/search/surface_store.h"

namespace moebius {

StepTimings SurfaceStore::known(const Keys& keys) const {
  StepTimings timings;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, key] : keys) {
    const auto at = known_.find(key);
    if (at != known_.end()) timings.of_pool[name] = at->second;
  }
  return timings;
}

void SurfaceStore::add(const Keys& keys, const StepTimings& timings) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, key] : keys) {
    const auto of = timings.of_pool.find(name);
    if (of != timings.of_pool.end()) known_[key].insert(of->second.begin(), of->second.end());
  }
}

std::int64_t SurfaceStore::measured() const {
  const std::lock_guard lock(mutex_);
  std::int64_t sum = 0;
  for (const auto& of : known_) sum += static_cast<std::int64_t>(of.second.size());
  return sum;
}

}  // namespace moebius
