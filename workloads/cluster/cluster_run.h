// One course of a cluster over time: jobs, faults, recovery, event by event. Between events a job's
// checkpoints are counted, not stepped through, so that weeks cost as many events as there are faults.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "workloads/cluster/cluster_plan.h"

namespace moebius {

// Where a job's time went. All together are the time from its arrival to its end, to the nanosecond.
enum class TimeItem : std::uint8_t {
  kProductive,  // work that stays
  kRecomputed,  // work that was lost with a fault and is done again
  kCheckpoint,  // standing still for one
  kDetection,   // nobody knows yet
  kIsolation,
  kWaiting,      // for a node
  kReplacement,  // the new node, its images and data
  kRestart,      // processes and state
  kSlowed,       // what a slow node took more
  kQueued,       // before the first start
};
inline constexpr int kNumTimeItems = static_cast<int>(TimeItem::kQueued) + 1;
std::string_view to_string(TimeItem item);

struct JobCourse {
  std::array<Time, kNumTimeItems> items = {};
  Time end;                        // of its work, or of the cluster's duration
  bool done = false;               // its work, before the end
  std::vector<int> interruptions;  // by fault kind
  std::int64_t checkpoints = 0;
  Time interval;  // between checkpoints, as chosen
  int total() const;
  Time of(TimeItem item) const { return items[static_cast<int>(item)]; }
};

// What happened, in the order of time.
struct ClusterEvent {
  enum class What : std::uint8_t { kStart, kFault, kDetected, kResumed, kRepaired, kDone };
  Time time;
  What what = What::kStart;
  int job = -1, node = -1, kind = -1;
};

struct ClusterCourse {
  std::vector<JobCourse> jobs;
  std::vector<int> faults;  // by kind, on nodes with and without a job
  double busy_node_s = 0;   // nodes times the seconds that a job held them
  double down_node_s = 0;   // ... that they were being repaired
  int least_free = 0;       // nodes that were free when fewest were
};

// `random` decides everything that is drawn. `hear` gets every event.
ClusterCourse run_cluster(const ClusterPlan& plan, std::uint64_t seed,
                          const std::function<void(const ClusterEvent&)>& hear = {});

}  // namespace moebius
