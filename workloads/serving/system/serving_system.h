// A whole serving system under one clock: requests arrive, a router sends them to instances, prompts are
// computed, caches travel to where decoding goes on, tokens come out. One event an iteration of an instance.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/system/instance.h"
#include "workloads/serving/system/request_feed.h"
#include "workloads/serving/system/service_metrics.h"

namespace moebius {

enum class PoolRole : std::uint8_t { kBoth, kPrefill, kDecode };

struct PoolRules {
  std::string name;
  PoolRole role = PoolRole::kBoth;
  InstanceRules instance;
  int instances = 1;
  StepCost* cost = nullptr;  // outlives the system
};

// To which instance a request goes.
enum class RouterPolicy : std::uint8_t {
  kRoundRobin,
  kLeastRequests,
  kLeastTokens,  // of prompts to compute and of contexts to read
};

// How a cache moves from the replica that computed it to the one that decodes. Each replica sends, and takes
// in, one cache after the other.
struct TransferRules {
  double bytes_per_token = 0;
  ByteRate rate;           // of a replica
  Time latency;            // before the first byte
  int layers = 1;          // of the model
  bool layerwise = false;  // each layer leaves when it is computed; otherwise all when the prompt is
};

struct SystemRules {
  std::vector<PoolRules> pools;  // one that does both, or one of each other role
  RouterPolicy router = RouterPolicy::kRoundRobin;
  TransferRules transfer;
  std::vector<ServiceGoal> goals = {{}};  // by service class
};

struct PoolFigures {
  std::string name;
  Instance::Totals totals;      // of all instances
  double busy = 0;              // share of the time from the first arrival to the last token
  std::int64_t peak_pages = 0;  // of the fullest replica
  std::int64_t preemptions = 0;
  PrefixTotals prefixes;  // of all replicas
  HostTotals host;        // of all instances
  SwapTotals swaps;       // of all replicas
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

  const ServiceMetrics& metrics() const;
  std::vector<PoolFigures> pools() const;
  double transferred_bytes() const;
  Time intake() const;  // that workers spent on requests before they could be scheduled

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace moebius
