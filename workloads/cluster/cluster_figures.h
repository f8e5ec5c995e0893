// What weeks of a cluster come to, over several courses of the same plan.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "workloads/cluster/cluster_run.h"

namespace moebius {

// Of one figure over the courses: nine in ten lie from low to high (the 5th and 95th percentile).
struct Interval {
  double mean = 0, low = 0, high = 0;
};
Interval interval_of(std::vector<double> values);

struct ClusterJobFigures {
  std::string name;
  int nodes = 0;
  Interval effective;  // productive time over all its time
  Interval interruptions;
  std::vector<Interval> items;  // seconds, by TimeItem
  std::vector<Interval> kinds;  // interruptions by fault kind
  double checkpoint_interval_s = 0, young_interval_s = 0, daly_interval_s = 0;
  double checkpoint_stall_s = 0;
  Interval mtbf_h;  // of its time, over its interruptions
  Interval end_s;
  double done = 0;  // share of the courses in which its work was done
};

struct ClusterFigures {
  std::int64_t runs = 0;
  int nodes = 0, devices = 0, spares = 0;
  double duration_s = 0;
  std::vector<std::string> kinds;
  std::vector<ClusterJobFigures> jobs;
  Interval effective;  // productive node time of all jobs over the node time that they held or waited
  Interval interruptions;
  Interval allocation;  // node time that jobs held, of all
  Interval down;        // node time in repair, of all
  Interval least_free;  // nodes
  Interval energy_j;    // at the meter
  Interval cost_usd;    // 0 when prices are not known
  Interval tokens;      // of productive time; 0 when not known
};

// Courses by seeds that follow from `seed`, side by side.
ClusterFigures cluster_figures(const ClusterPlan& plan, std::uint64_t seed);

}  // namespace moebius
