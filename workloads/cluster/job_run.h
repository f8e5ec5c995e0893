// A job while a cluster runs, and what is to happen next. For cluster_run.cpp alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "workloads/cluster/cluster_plan.h"
#include "workloads/cluster/job_progress.h"

namespace moebius {

enum class JobStage : std::uint8_t {
  kQueued,
  kRunning,
  kUnknown,     // it is down, and nobody knows
  kRecovering,  // steps one after the other
  kWaiting,     // for nodes
  kDone,
};

// A part of the way back.
struct RecoveryStep {
  TimeItem item;
  Time takes;
};

struct JobRun {
  JobRun(const ClusterJob& spec, const CheckpointPlan& plan, const CheckpointCosts& its_costs, Time interval)
      : job(&spec), progress(plan, its_costs, interval), costs(its_costs) {}

  // Where it goes on: a restart is enough where the fault is of no node. Else a slow node is slow as before;
  // of wrong results work from before the first is right, and from there they are made again only by a node
  // that is still among its own.
  void judge(const FailureKind& kind) {
    if (kind.effect == FailureEffect::kSlow && kind.nodes == 0) {
      bad = false;
      progress.set_costs(costs, progress.course().interval, 1);
    }
    if (kind.effect != FailureEffect::kSilent) return;
    const bool stays = kind.nodes > 0 && bad_node >= 0;
    bad = stays || progress.done() > wrong_from;
    wrong_from = std::min(wrong_from, progress.done());
  }

  const ClusterJob* job;
  JobProgress progress;
  CheckpointCosts costs;
  JobStage stage = JobStage::kQueued;
  TimeItem item = TimeItem::kQueued;  // where its time goes, while it does not run; from:
  Time since;
  int version = 0;                  // of its next event: an older one does not happen any more
  std::vector<RecoveryStep> steps;  // still to come, the next one last
  bool has_nodes = true;            // after these steps it can run; else it has to get nodes first
  static constexpr int kNobody = -1;
  std::vector<int> nodes;   // by place; kNobody: it is broken
  std::vector<int> broken;  // places in `nodes` to be filled
  bool exchanged = false;   // some were, since it last ran
  int lost_nodes = 0;       // with their memory, since it last ran
  bool bad = false;         // slow or silently wrong, not known yet
  int bad_node = -1;        // which one; -1: the job's own software, or it is gone; its kind:
  int bad_kind = -1;
  int bad_version = 0;  // of the search for it: an older one is over
  Time wrong_from;      // work that was right
};

// What is to happen, first by time, then by the order in which it was decided.
struct PendingEvent {
  enum class What : std::uint8_t { kArrival, kFault, kTraced, kDetected, kFound, kStep, kRepaired, kEnd };
  Time time;
  std::int64_t order = 0;
  What what = What::kFault;
  int subject = -1, version = 0;  // job or node
  bool operator>(const PendingEvent& other) const {
    return time != other.time ? other.time < time : other.order < order;
  }
};

}  // namespace moebius
