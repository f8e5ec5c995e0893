// What engines that serve models do unless they are told otherwise: defaults of /plan by the name of the
// framework. Every one of them can be overridden by its own key.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "hw/accelerator.h"
#include "hw/cluster.h"
#include "hw/units.h"
#include "workloads/schedule/fragment.h"
#include "workloads/serving/system/device_reserve.h"
#include "workloads/serving/system/instance.h"
#include "workloads/serving/system/replica.h"
#include "workloads/serving/system/service_plan.h"

namespace moebius {

// What an engine takes instead on devices with less memory, or of a family that it names.
struct SmallerDevice {
  double below = 0;              // bytes; 0: no row
  std::string_view family = {};  // catalog ids that begin so
  int token_budget = 0;
  int max_batch = 0;  // 0: as otherwise
};

inline constexpr int kAlwaysAbsorbed = 1 << 24;  // /plan/prefill/absorbed_below: more than any prefixes

struct Framework {
  std::string_view name, help;
  BatchPolicy batching = BatchPolicy::kPrefillFirst;         // /plan/scheduler/batching
  bool chunked = true;                                       // /plan/scheduler/chunked
  int token_budget = 16384;                                  // /plan/prefill/token_budget
  int max_batch = 256;                                       // /plan/decode/max_batch
  double device_share = 0.9;                                 // /plan/cache/hbm/share, without a reserve
  DeviceReserve reserve = {};                                // else what it leaves
  CacheShare share_of = CacheShare::kHeld;                   // /plan/cache/hbm/of
  DeviceRuntime runtime = {};                                // /plan/cache/hbm/runtime
  double sampler_bytes = 0;                                  // see ServicePlan
  int block_tokens = 64;                                     // /plan/cache/block_tokens
  bool keeps_windows_only = false;                           // /plan/cache/windows
  bool fused = false;                                        // /plan/fused
  bool fused_head_norms = true;                              // /plan/fused_head_norms
  bool fused_append = true, fused_normed_append = true;      // /plan/fused_append, the latter with head norms
  bool fused_reduction = false;                              // /plan/fused_reduction
  bool reduces_normed_dense = true;                          // so, too, dense models that norm their heads
  bool quantised_reduction = false;                          // /plan/quantised_reduction
  double output_reserve = 0;                                 // /plan/scheduler/output_reserve
  double first_reserve = 0;                                  // /plan/scheduler/output_reserve_start
  int reserve_decay = 0;                                     // /plan/scheduler/output_reserve_decay
  int newcomer_reserve = 0;                                  // /plan/scheduler/newcomer_reserve
  int absorbed_below = 0;                                    // /plan/prefill/absorbed_below
  bool absorbed_by_chip = false;                             // absorbed_on() says what that is
  Sampling sampling = Sampling::kShards;                     // /plan/scheduler/sampling
  LaunchMode launch = LaunchMode::kHidden;                   // /plan/scheduler/launch
  ExpertCalls expert_calls = ExpertCalls::kByKernel;         // /plan/one_expert_call
  bool captured_padding = true;                              // /plan/scheduler/captured_padding
  int captured_doubled_from = 0;                             // /plan/scheduler/captured_doubled_from
  int exact_doubled_from = 0;                                // the same without captured_padding
  int captured_most = 0;                                     // /plan/scheduler/captured_most
  CapturedCount captured_counts = {};                        // /plan/scheduler/captured_counts
  int captured_prompts = 0;                                  // /plan/scheduler/captured_prompts
  bool overlap = false;                                      // /plan/scheduler/overlap
  bool decided_ahead = false;                                // /plan/scheduler/decided_ahead
  std::array<SmallerDevice, 3> smaller = {};                 // the last one that a device meets counts
  CollectiveSource collectives = CollectiveSource::kSglang;  // /cluster/collectives
  Algorithm dispatch = Algorithm::kAuto;                     // /plan/decode/ep/dispatch, and prefill's
  // Where /cluster/kernels does not say: stacks that begin so come first, in this order.
  std::array<std::string_view, 2> stacks = {};
  Time host_per_iteration = {}, host_per_sequence = {}, host_per_request = {};  // /plan/scheduler/host_*
  Time host_per_prompt_token = {};                                              // likewise
  Time host_per_launch = {};                                                    // likewise
  Time host_per_submission = {};                                                // likewise
  std::string_view source = {};                                                 // of the scheduling defaults
  std::string_view fitted = {};    // how the host's costs of requests and launches were found; empty: none
  std::string_view profiled = {};  // where those of an iteration were measured, and what is not counted
};

// Whether its host launches a layer's experts by one call on the chip.
bool launches_experts_once(ExpertCalls calls, const ServingPlan& plan, const Accelerator& chip);

// Its defaults on a device: engines take smaller iterations where it has less memory.
Framework on_device(Framework framework, const Accelerator& chip);
// `absorbed_below` where such a chip attends.
int absorbed_on(const Framework& framework, const Accelerator& chip);

// The first one, "none", has the defaults of the schema.
std::span<const Framework> frameworks();

}  // namespace moebius
