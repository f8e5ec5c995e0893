// What a report says of a service beside the figures of its requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/separation/side_times.h"
#include "workloads/serving/system/serving_system.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

// Of a pool whose experts stand on another.
struct SeparationFigures {
  SideTimes mean;                       // of the iterations that the surface was compared with
  int experts = 0;                      // devices
  Bytes attention_weights, expert_weights;  // on a device
};

struct ServicePoolFigures {
  PoolFigures run;
  int instances = 0, replicas = 0, devices = 0;
  std::int64_t pages = 0;             // of a replica's cache
  std::int64_t timed_iterations = 0;  // that were carried out, op by op
  SurfaceError surface;
  std::optional<SeparationFigures> separation;
};

struct EncoderFigures {
  EncoderPool::Totals run;
  int devices = 0;    // of their own; 0: those of the language model
  double busy = 0;    // share of the run
  double one_image = 0;  // seconds alone
};

struct ServiceFigures {
  std::vector<ServicePoolFigures> pools;
  TimeShares shares;
  std::int64_t rejected = 0;
  double transferred_bytes = 0;
  std::optional<EncoderFigures> encoder;
  int devices() const {
    int sum = encoder ? encoder->devices : 0;
    for (const ServicePoolFigures& pool : pools) sum += pool.devices;
    return sum;
  }
};

}  // namespace moebius
