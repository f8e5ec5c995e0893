// What a service costs: its devices by the hour, busy or idle, and how that falls on tokens and on classes of
// requests. Energy is what boards draw idle and for their work, where that is known (clock_power.h), else
// their TDP while they work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/separation/side_times.h"
#include "workloads/serving/system/expert_figures.h"
#include "workloads/serving/system/pipeline_cost.h"
#include "workloads/serving/system/serving_system.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

// What the catalog (or the scenario, where it states its own) says of a pool's devices.
struct PoolTariff {
  std::string accelerator;
  double usd_per_hour = 0;        // of a device; 0: not known
  std::string source, status;     // of the price
  double watts = 0;               // of a device under load: TDP; 0: not known
  double overhead_watts = 0;      // of a device's share of its node
  double tiers_usd_per_hour = 0;  // of its share of the cache's tiers on the node, beside the device's
  std::optional<double> idle_watts = {};  // of a device; nothing: what its work draws is not known
};

// Of a pool whose experts stand on another.
struct SeparationFigures {
  SideTimes decode,
      prompts;      // means, of iterations without and with prompts that the surface was compared with
  int experts = 0;  // devices
  Bytes attention_weights, expert_weights;  // on a device
};

struct ServicePoolFigures {
  PoolFigures run;
  int instances = 0, replicas = 0, devices = 0;
  std::int64_t pages = 0;             // of a replica's cache
  std::int64_t timed_iterations = 0;  // that were carried out, op by op
  SurfaceError surface;
  PoolTariff tariff;
  double drawn_joules = 0;                    // by work, beside what devices draw idle
  std::optional<ExpertFigures> experts = {};  // where tokens choose unevenly among ranks' experts
  std::optional<SeparationFigures> separation = {};
  std::optional<PipelineCost::Totals> pipeline =
      {};  // of all instances, where layers stand on several stages
};

struct ServiceClassFigures {
  std::string name;
  ServiceGoal goal;
  ClassFigures run;
};

// Of one pool over the span of the run.
struct PoolCost {
  double usd = 0, usd_idle = 0;  // all its devices; the part of the time in which they did nothing
  // Cost by the time of prompts and of decoding, idle time in proportion, over the tokens of each; 0: none.
  double usd_per_input_token = 0, usd_per_output_token = 0;
  double joules = 0;
};

// Encoders on devices of their own; 0: there are none.
struct EncoderDevices {
  int devices = 0;
  double busy = 0;  // share of the run
  PoolTariff tariff;
  double drawn_joules = 0;
};

struct CostFigures {
  std::string unknown;  // a chip without a price: then nothing below but joules counts
  std::vector<PoolCost> pools;
  PoolCost encoders;  // falls on the tokens of prompts alone
  // What the tokens of a class cost in their pools.
  std::vector<double> class_usd;
  double usd = 0, usd_idle = 0, joules = 0;
  double usd_unused = 0;               // of `usd`, pools that had no tokens: of no class
  std::int64_t input = 0, output = 0;  // tokens of requests that were completed
};

CostFigures cost_of(const std::vector<ServicePoolFigures>& pools, const EncoderDevices& encoders,
                    const std::vector<ServiceClassFigures>& classes, Time span);

}  // namespace moebius
