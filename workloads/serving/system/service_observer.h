// Who looks on while a service runs, and changes nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/system/service_metrics.h"
#include "workloads/serving/system/step.h"

namespace moebius {

// How full a pool is at a moment.
struct PoolMoment {
  std::int64_t waiting = 0, running = 0;  // sequences without and with pages
  std::int64_t pages = 0;                 // held
  double balancedness = 1;                // of its experts: mean over fullest rank
};

class ServiceObserver {
 public:
  virtual ~ServiceObserver() = default;
  // An iteration begins; the instance is counted over all pools.
  virtual void iteration(std::int32_t instance, Time begin, Time end, bool prompts, bool decodes,
                         std::int64_t rows) = 0;
  virtual void finished(const RequestMoments& request) = 0;
  // The first moment of which a sample is wanted.
  virtual Time due() const = 0;
  // So full the pools were from the last event until this moment, at which something is about to happen.
  virtual void sample(Time until, const std::vector<PoolMoment>& pools) = 0;
};

}  // namespace moebius
