// What became of a drawn load on a cluster: of its jobs, of its cards, of its power.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "workloads/cluster/cluster_plan.h"
#include "workloads/cluster/queue/card_accounts.h"
#include "workloads/cluster/queue/mixed_load.h"
#include "workloads/cluster/queue/shape_steps.h"

namespace moebius {

// Of one drawn job; of a service all its replicas together.
struct QueueJobCourse {
  DrawnJob job;
  bool started = false, over = false;
  bool done = false;      // over, and worked: a service that ends before anybody served it is not
  Time first_start = {};  // where it started
  Time end = {};          // of its work, or of the time
  Time waited = {};       // in the queue, all times together; a service: of all its replicas
  Time longest = {};      // at one time
  Time ideal = {};        // run time as asked for on its reference pool
  int preempted = 0, resized = 0, interrupted = 0;
  CardTime cards = 0;  // that it held
  std::vector<CardTime> by_pool = {};
  double tokens = 0, cost_usd = 0;  // of its cards, where their price is known;
  bool priced = true;               // false: it held some whose price is not
};

// A job's cards over time; consecutive ones with the same cards are one.
struct CardSpan {
  int job = 0, replica = 0, pool = 0;
  std::int64_t cards = 0;
  Time begin, end;
};

struct QueueEvent {
  enum class What : std::uint8_t {
    kArrived,
    kStarted,
    kPreempted,
    kShrunk,
    kGrown,
    kFault,
    kDetected,
    kResumed,
    kRepaired,
    kDone,
  };
  Time time;
  What what = What::kArrived;
  int job = -1, replica = 0, pool = -1, node = -1, kind = -1;
  std::int64_t cards = 0;
};

struct QueueCourse {
  std::vector<QueueJobCourse> jobs;
  std::vector<CardAccounts> pools;   // all their card time
  std::vector<CardAccounts> queues;  // what their jobs held
  std::vector<int> faults;           // by kind
  std::int64_t events = 0;
  std::int64_t beyond_quota = 0;  // times that cards were given against the rule of the partition
  std::int64_t kept_from_owner =
      0;                  // times that a job within its quota waited while nobody gave back what was lent
  CardTime borrowed = 0;  // card time that queues held beyond their quotas
  CardTime wanted_replicas = 0, missing_replicas = 0;  // card time of services: asked for, not there
  double energy_j = 0, peak_w = 0;                     // at the meter
  double over_cap_s = 0;                               // time above the cap, clocks being as low as they go
  Time throttled = {};                                 // time with clocks held down
  std::vector<CardTime> asked_of_services = {};        // by hour, the last one perhaps shorter
  double longest_beside = 1;  // times that traffic between nodes took as long beside others as alone
};

struct QueueInputs {
  const ClusterPlan& cluster;  // faults, recovery, checkpoints, power, duration
  const QueuePlan& plan;
  const ShapeSteps& steps;
  std::vector<DrawnJob> jobs = {};  // in the order of arrival; empty: drawn
};

struct QueueListeners {
  std::function<void(const QueueEvent&)> hear = {};
  std::function<void(const CardSpan&)> span = {};
  std::function<void(Time, double watts)> power = {};
};

// One course. The load hangs on `load_seed` alone, faults and delays on `fault_seed`.
QueueCourse run_queues(const QueueInputs& inputs, std::uint64_t load_seed, std::uint64_t fault_seed,
                       const QueueListeners& listeners = {});

}  // namespace moebius
