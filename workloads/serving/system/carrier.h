// The seam between what a service decides and who does it, where that is carried out in steps of its own and
// its time is known when it has passed: the system says what begins, and is told when it has ended
// (ServingSystem::iteration_ended, cache_moved). Without a carrier iterations take what step costs say.
#pragma once

#include <cstdint>

#include "workloads/serving/system/router.h"

namespace moebius {

class ServiceCarrier {
 public:
  virtual ~ServiceCarrier() = default;
  // Request `number` of the traffic, from 0 on, is sequence `id` of the replicas until its last token is
  // there; then the id may be another one's.
  virtual void accepted(std::int32_t id, std::int32_t number) = 0;
  // The instance, by its number among those of all pools, has decided an iteration.
  virtual void iterate(std::int32_t instance) = 0;
  // What a sequence has in the cache of the first replica goes to the second, which has room for it.
  virtual void move_cache(std::int32_t id, const Location& from, const Location& to) = 0;
};

}  // namespace moebius
