// Attention replicas that go through iterations together, because they share experts: an iteration lasts as
// long as its slowest replica needs. One replica alone is the common case of a dense model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/serving/system/replica.h"

namespace moebius {

// On which replica of an instance a request goes.
enum class ReplicaBalance : std::uint8_t {
  kRoundRobin,
  kRequests,  // with the fewest requests
  kTokens,    // with the fewest tokens, of prompts to compute and of contexts to read
};

// What the processor does for an iteration: to schedule it, to sample and to turn tokens into text.
struct HostCosts {
  Time per_iteration, per_sequence;
  bool overlapped = false;  // beside the device's work of the iteration before; otherwise between the two
};

struct InstanceRules {
  ReplicaRules replica;
  int replicas = 1;
  ReplicaBalance balance = ReplicaBalance::kTokens;
  HostCosts host;
};

class Instance {
 public:
  Instance(const InstanceRules& rules, StepCost& cost);

  int size() const { return static_cast<int>(replicas_.size()); }
  Replica& replica(int index) { return replicas_[index]; }
  const Replica& replica(int index) const { return replicas_[index]; }
  bool busy() const { return busy_; }
  Time until() const { return until_; }  // the end of the iteration that goes on, or of the last one

  // The replica for the next request by the balance; advances the turn of round robin.
  int choose();
  // Starts an iteration, unless one is going on or nothing can be done; returns its end.
  std::optional<Time> begin(Time now);
  // The iteration has ended: outcomes of replicas add up.
  void end(Time now, StepOutcome& outcome);

  std::int64_t load(ReplicaBalance by) const;  // of all replicas: requests or tokens

  struct Totals {
    std::int64_t iterations = 0, prefills = 0;  // with prompts in them
    Time busy;                                  // of iterations
    Time busy_with_prompts;                     // of that, by rows where an iteration has both
    double rows = 0;                            // computed by all replicas
    double slowest_rows = 0;  // of the replica that had most, times replicas: over `rows`, the imbalance
  };
  const Totals& totals() const { return totals_; }

 private:
  Time duration();

  InstanceRules rules_;
  StepCost& cost_;
  std::vector<Replica> replicas_;
  std::vector<StepShape> shapes_;
  bool busy_ = false;
  Time until_;
  int turn_ = 0;
  Totals totals_;
};

// Requests or tokens that a replica has before it.
std::int64_t load_of(const ReplicaLoad& load, ReplicaBalance by);

}  // namespace moebius
