// What an engine leaves of a device to all but weights and cache, where it reckons that from its own sizes.
#pragma once

#include <cstdint>

#include "hw/units.h"
#include "workloads/serving/plan.h"

namespace moebius {

// In MiB.
struct DeviceReserve {
  double always = 0, per_prompt_token = 0, per_captured = 0, per_device = 0;
  double per_captured_of_replica = 0, above_300_of_replica = 0;  // with attention replicas, for each of them
  double least = 0;                                              // on devices of more than 60 GiB
  bool is_told() const { return always > 0; }
};

// What a process has of a device before weights are there: its context and its libraries' code, and, where it
// has ranks beside it, the buffers of communicators.
struct DeviceRuntime {
  Bytes context, communicators;
  Bytes of(int ranks) const { return ranks > 1 ? context + communicators : context; }
};

// An engine of pp stages of dp x tp devices that takes in `prompt_tokens` at a time: dp replicas of attention
// of ranks that cut heads or prompts.
struct EngineSize {
  int dp = 1, tp = 1, pp = 1;
  std::int64_t prompt_tokens = 0;
  int captured = 0;  // sequences of a replica at most; 0: captured_sequences()
};

// Graphs without an end go as far as sequences may, of which each stage has a part at a time.
inline EngineSize engine_size(const ServingPlan& plan) {
  const int captured =
      plan.captured == kAllCaptured ? std::max(1, plan.max_batch / plan.pp) : plan.captured;
  return {plan.replicas(), plan.tp * plan.cp, plan.pp, plan.token_budget, captured};
}

// Of a replica, for which SGLang captures graphs by default on `devices` of a stage
// (server_args.py: cuda_graph_max_bs by gpu_mem and tp_size).
int captured_sequences(Bytes memory, int devices);

// The share of its devices of `memory` that is left for weights and cache, in thousandths; zero or less where
// the reserve is more than they have.
double share_beside(const DeviceReserve& reserve, Bytes memory, const EngineSize& engine);

}  // namespace moebius
