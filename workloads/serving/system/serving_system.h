// A whole serving system under one clock: requests arrive, a router sends them to instances, prompts are
// computed, caches travel to where decoding goes on, tokens come out. One event an iteration of an instance.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/separation/encoder_pool.h"
#include "workloads/serving/system/admission.h"
#include "workloads/serving/system/carrier.h"
#include "workloads/serving/system/instance.h"
#include "workloads/serving/system/request_class.h"
#include "workloads/serving/system/request_feed.h"
#include "workloads/serving/system/router.h"
#include "workloads/serving/system/service_metrics.h"
#include "workloads/serving/system/service_observer.h"
#include "workloads/serving/system/tiers/tiered_cache.h"
#include "workloads/serving/system/wan_link.h"

namespace moebius {

struct PoolRules {
  std::string name;
  PoolRole role = PoolRole::kBoth;
  InstanceRules instance;
  int instances = 1;
  int lanes =
      1;  // so many consecutive instances are lanes of one pipeline, whose replicas share a cache each
  std::int32_t running =
      0;  // sequences at once on a replica, which its lanes share out; 0: the replicas' own rules say
  StepCost* cost = nullptr;             // outlives the system
  std::vector<StepCost*> costs = {};    // the same by instance, where theirs differ; empty: `cost`
  std::optional<WanRules> wan = {};     // between users and the pool; nothing: no time and no limit
  double usd_per_second = 0;            // of an instance, as the router sees it; 0: not known
  ByteRate transfer_rate = {};          // of a replica; 0: the one of all
  int sending_stages = 1;               // that make up that rate, each with its own layers
  int replicas_on_port = 1;             // that share a NIC: their caches go one after the other
  double cache_bytes_per_token = 0;     // that come here to be decoded; 0: as of all
  std::optional<TierRules> tiers = {};  // below its replicas; of pools that take prompts
};

// How a cache moves from the replica that computed it to the one that decodes. Each replica sends, and takes
// in, one cache after the other; layers that leave as they are computed go where it does neither meanwhile.
struct TransferRules {
  double bytes_per_token = 0;
  double bytes_per_sequence = 0;    // beside those of its tokens
  ByteRate rate;                    // of a replica
  Time latency;                     // before the first byte
  int layers = 1;                   // of the model
  bool layerwise = false;           // each layer leaves when it is computed; otherwise all when the prompt is
  Time call = {};                   // of a layer, before its bytes
  bool brings_first_token = false;  // see TransferEngine
};

struct SystemRules {
  std::vector<PoolRules>
      pools;  // that do both, or some of each other role; at most kMostPools. One alone may
              // do one phase: prompts that end with a token, or decoding behind what is there
  RouterPolicy router = RouterPolicy::kRoundRobin;
  TransferRules transfer;
  std::vector<RequestClass> classes = {{}};
  AdmissionRules admission = {};
  ServiceObserver* observer = nullptr;  // outlives the system; may be none
  ServiceCarrier* carrier = nullptr;    // the same; none: time is what step costs say
  EncoderRules encoder = {};            // none: replicas encode the images of their prompts
};

struct ClassTokens {  // that a pool computed: of prompts, and generated
  std::int64_t input = 0, output = 0;
};

// How far forecasts of the first token were off, as they stood when requests came.
struct ForecastFigures {
  std::int64_t requests = 0;
  double error = 0, bias = 0;  // sums of |forecast / came - 1|, and of that with its sign

  void add(Time forecast, Time came);
};

struct PoolFigures {
  std::string name;
  Instance::Totals totals;      // of all instances
  double busy = 0;              // share of the system's span
  std::int64_t peak_pages = 0;  // of the fullest replica
  std::int64_t preemptions = 0;
  double preempted =
      0;  // seconds from preemptions until keys are there again, or computed again, of all requests
  PrefixTotals prefixes;            // of all replicas
  std::vector<ClassTokens> tokens;  // of finished requests, by class
  WanFigures wan;
  HostTotals host;   // of all instances
  SwapTotals swaps;  // of all replicas
  DraftTotals drafts;
};

class ServingSystem {
 public:
  ServingSystem(const SystemRules& rules, RequestFeed& feed);
  ~ServingSystem();

  // Carries out the next event; false when there is none any more. run_error when requests wait for each
  // other.
  bool advance();
  Time now() const;
  std::int64_t waiting() const;  // requests that are in the system

  // With a carrier, whose clock counts. When the next event is due, unless the carrier has to end something
  // first; all that is due by then; what has ended, at times that never go back.
  std::optional<Time> due() const;
  void advance_to(Time now);
  void iteration_ended(std::int32_t instance, Time now);
  void cache_moved(std::int32_t id, Time now);
  const Instance& instance(std::int32_t number) const;  // among those of all pools
  Instance& instance(std::int32_t number);

  const ServiceMetrics& metrics() const;
  std::vector<PoolFigures> pools() const;
  double transferred_bytes() const;
  std::optional<TierFigures> tiers() const;  // of all pools; nothing: there are none
  Time intake() const;                       // that workers spent on requests before they could be scheduled
  ForecastFigures forecasts() const;
  EncoderPool::Totals encoders() const;
  Time span() const;  // from the first arrival until the last user has the last token

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace moebius
