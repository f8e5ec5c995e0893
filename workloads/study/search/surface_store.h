// What iterations of pools took, kept for all plans that have them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "workloads/serving/system/step_surface.h"

namespace moebius {

class SurfaceStore {
 public:
  // By several threads. `keys`: of the pools by their names; equal keys have equal iterations.
  using Keys = std::vector<std::pair<std::string, std::string>>;  // name, key
  StepTimings known(const Keys& keys) const;
  void add(const Keys& keys, const StepTimings& timings);

  std::int64_t measured() const;  // iterations

 private:
  mutable std::mutex mutex_;
  std::map<std::string, StepSurface::Known> known_;
};

}  // namespace moebius
