// A job on a small cluster of which each test changes what it is about.
#pragma once

#include <cstdint>

#include "workloads/cluster/cluster_run.h"

namespace moebius::one_job {

using namespace literals;

// One job on 4 of 5 nodes for 100 hours, which saves for 60 s (600 GB at 10 GB/s) after each hour.
inline ClusterPlan plan() {
  ClusterPlan plan;
  plan.duration = {100 * kHour.ns};
  plan.nodes = 5;
  plan.checkpoint = {.policy = CheckpointPolicy::kSync, .choice = IntervalChoice::kGiven, .interval = kHour};
  plan.checkpoint.storage = {10e9};
  plan.checkpoint.host_copy = plan.checkpoint.peer_copy = {1e9};
  plan.faults = {{.name = "gpu", .repair = {{10 * kHour.ns}, 0}}, {.name = "software", .nodes = 0}};
  plan.detection.crash.mean = 60_s;
  plan.recovery = {.isolate = {30_s, 0},
                   .replace = {120_s, 0},
                   .image = {100_s, 0},
                   .cache = {80_s, 0},
                   .restart = {90_s, 0}};
  plan.jobs = {{.name = "a", .nodes = 4, .state = {600e9}}};
  return plan;
}

inline Time sum(const JobCourse& course) {
  Time all;
  for (const Time item : course.items) all = all + item;
  return all;
}

inline JobCourse only_job(const ClusterPlan& plan, std::uint64_t seed = 1) {
  return run_cluster(plan, seed).jobs.at(0);
}

}  // namespace moebius::one_job
