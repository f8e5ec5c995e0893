// How a whole service is laid out: which pools do what, how requests find their replica, what the cache may
// take. Plain data that the scenario reader checks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/balancing/balance_plan.h"
#include "workloads/serving/plan.h"
#include "workloads/serving/separation/encoder_plan.h"
#include "workloads/serving/system/device_reserve.h"
#include "workloads/serving/system/instance.h"
#include "workloads/serving/system/replica.h"
#include "workloads/serving/system/request_class.h"
#include "workloads/serving/system/service_policies.h"
#include "workloads/serving/system/tiers/tier_plan.h"
#include "workloads/serving/system/transfer_engine.h"
#include "workloads/serving/system/wan_link.h"
#include "workloads/serving/traffic/traffic_source.h"

namespace moebius {

// A pool and what it does: instances of `plan.devices()` each, as many as the pool has room for.
struct ServicePhase {
  PoolRole role = PoolRole::kBoth;
  int pool = 0;  // index in the cluster's
  int instances = 1;
  int expert_pool = -1;  // of its experts, where these stand apart
  ServingPlan plan;      // of one instance; of its phases, a pool that does one has only that
  BatchPolicy batching = BatchPolicy::kPrefillFirst;
  bool chunked = true;
  std::optional<WanRules> wan = {};  // between users and the pool
};

// How a phase is spread over ranks, as given; zero: as many as the devices allow, or as the other phase.
struct PhaseKeys {
  std::string pool = {};       // name; empty: the only one
  int dp = 0, tp = 0, ep = 0;  // 0: not given
  int expert_tp = 0;           // the same of ep/tp
  bool placed = false;         // the pool or one of these degrees is given
  int cp = 1;
  int pp = 0;                             // stages; 0: not given
  Algorithm exchange = Algorithm::kAuto;  // of the phase alone, as what follows
  bool exchange_given = false;
  bool two_batch = false;
  CutAttention attend_by = CutAttention::kTokens;  // with cp above 1
  int communication_cores = 0;
  std::string expert_pool = {};  // attention and experts apart: name of the experts'
  int expert_ranks = 0;          // 0: all devices of that pool
  int microbatches = 3;
  std::optional<SharedExperts> shared_experts = {};
};

// A row of `/plan/pools`: one of several pools that serve one model.
struct PoolKeys {
  PoolRole role = PoolRole::kBoth;
  PhaseKeys phase;
  int max_batch = 0;
  std::int64_t token_budget = 0, absorbed_below = 0;
  bool absorbed_given = false;
  BatchPolicy batching = BatchPolicy::kPrefillFirst;
  bool chunked = true;
  std::optional<WanRules> wan = {};
};

// A row of `/sla`, and the names of the pools that may serve it; none: all.
struct ClassKeys {
  RequestClass of;
  std::vector<std::string> pools;
};

// The engine around its kernels; see scenario/engine_keys.h.
// How an engine's host launches the kernels of a layer's experts.
enum class ExpertCalls : std::uint8_t {
  kByKernel,
  kFlashInfer,  // by one call on Blackwell in 8 and 4 bits, else by kernel (Triton)
  kOne,         // all by one call
};

// What the limit of captured graphs is a number of: sequences of a replica, or rows with their guesses.
enum class CapturedCount : std::uint8_t { kSequences, kTokens };
// In place of a limit: the engine reckons it of the memory and the number of its devices
// (captured_sequences()).
inline constexpr int kCapturedBySize = -1;

struct EngineKeys {
  bool slots = false;
  int slot_tokens = 0;
  Sampling sampling = Sampling::kShards;
  LaunchMode launch = LaunchMode::kHidden;
  int receive_every = 1;       // see ReplicaRules
  bool decided_ahead = false;  // likewise
  double gather_share = 0;     // likewise
  int gather_iterations = 0;
  int await_prompts = 0, gather_prompts = 0;  // see InstanceRules
  bool captured_padding = true;               // see InstanceRules, fills_graphs
  int captured_step = 8, captured_doubled_from = 0;
  int captured_most = 0;  // 0: as many as may decode at once; kCapturedBySize
  CapturedCount captured_counts = CapturedCount::kSequences;
  int captured_prompts = 0;  // see ServingPlan
  bool padded = false;
  ExpertCalls expert_calls = ExpertCalls::kByKernel;
  Bytes swap_space;  // of the host's memory a device; zero: preempted sequences are computed again
  std::shared_ptr<const Model> draft_model = {};  // that makes guesses; null: the model's own module
};

// What the share is of that the cache has of a device's memory.
enum class CacheShare : std::uint8_t {
  kHeld,  // weights and cache together take so much of it (SGLang's mem_fraction_static)
  kUsed,  // weights, cache and the largest iteration together (vLLM's gpu_memory_utilization)
  kFree,  // the cache takes so much of what weights and the largest iteration leave (TensorRT-LLM's
          // free_gpu_memory_fraction)
};

struct ServicePlan {
  bool full_steps = true;    // every op of every iteration, on one pool, all requests there at the beginning
  bool steps_given = false;  // in the scenario
  bool fold_given = false, absorbed_given = false;
  bool separate = false;       // prefill and decode on pools of their own
  bool experts_apart = false;  // attention and experts on pools of their own
  EncoderPlan encoder = {};
  PoolRole does = PoolRole::kBoth;  // one phase alone: prompts that end with their first token, or those
                                    // whose prompts the cache has when they come
  PhaseKeys prefill = {}, decode = {};
  std::vector<PoolKeys> pools = {};       // empty: as prefill and decode say
  std::vector<ServicePhase> phases = {};  // one that does both, or prefill and decode; empty with full_steps
  std::vector<ClassKeys> class_keys = {};
  std::vector<RequestClass> classes = {};  // at least one, once phases are set
  AdmissionRules admission = {};
  BatchPolicy batching = BatchPolicy::kPrefillFirst;
  bool chunked = true;  // prompts may be cut at the token budget
  Speculation speculation = {};
  // See ReplicaRules; the last three where prompts are computed and answered on one pool.
  double output_reserve = 0, first_reserve = 0;
  int reserve_decay = 0, newcomer_reserve = 0;
  RouterPolicy router = RouterPolicy::kRoundRobin;
  ReplicaBalance balance = ReplicaBalance::kTokens;
  HostCosts host = {};
  EngineKeys engine = {};
  TransferEngine transfer = {};  // of caches on their way from prefill to decode
  bool prefix_cache = false;     // prompts that begin alike share what the cache has of them
  // Layers with a window keep no tokens that none will look at any more.
  bool keeps_windows_only = false, windows_given = false;
  TierPlan tiers = {};
  ExpertBalancePlan experts = {};
  double device_share = 0.9;   // of a device's memory, see CacheShare
  DeviceReserve reserve = {};  // told: each pool's share is what this leaves of its devices
  CacheShare share_of = CacheShare::kHeld;
  DeviceRuntime runtime = {};  // that neither weights nor cache can have
  // Of each logit of all sequences that may run: an engine tries its sampler before it sizes its cache.
  double sampler_bytes = 0;
};

// When requests come, unless all are there at the beginning.
struct ServiceTraffic {
  std::optional<TrafficSource> source = {};  // nothing: a batch
  double rate_scale = 1;                     // times faster than the source says
  ExpertDrift drift = {};                    // of the popularity of experts
  std::int64_t users = 0;                    // > 0: so many at a time, each asks again when answered
};

}  // namespace moebius
