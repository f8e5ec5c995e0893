// What a report says of a service beside the figures of its requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/serving/system/serving_system.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

struct ServicePoolFigures {
  PoolFigures run;
  int instances = 0, replicas = 0, devices = 0;
  std::int64_t pages = 0;             // of a replica's cache
  std::int64_t timed_iterations = 0;  // that were carried out, op by op
  SurfaceError surface;
};

struct ServiceFigures {
  std::vector<ServicePoolFigures> pools;
  TimeShares shares;
  std::int64_t rejected = 0;
  double transferred_bytes = 0;
  std::optional<TierFigures> tiers = {};
  int devices() const {
    int sum = 0;
    for (const ServicePoolFigures& pool : pools) sum += pool.devices;
    return sum;
  }
};

}  // namespace moebius
