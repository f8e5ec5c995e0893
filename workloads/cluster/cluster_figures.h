// What weeks of a cluster come to, over several courses of the same plan.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/cluster/cluster_run.h"

namespace moebius {

// Of one figure over the courses: nine in ten lie from low to high (the 5th and 95th percentile).
struct RunSpread {
  double mean = 0, low = 0, high = 0;
  bool known = true;  // false: no course has it
};
RunSpread spread_over(std::vector<double> values);

// A figure of each course, gathered; a course may have none.
template <class Course, class Of>
RunSpread spread_of_courses(const std::vector<Course>& courses, Of of) {
  std::vector<double> values;
  for (const Course& course : courses) {
    if (const std::optional<double> value = of(course)) values.push_back(*value);
  }
  return spread_over(std::move(values));
}

struct ClusterJobFigures {
  std::string name;
  int nodes = 0;
  RunSpread effective;  // productive time over its time since it first started, where it did
  RunSpread interruptions;
  std::vector<RunSpread> items;  // seconds, by TimeItem
  std::vector<RunSpread> kinds;  // interruptions by fault kind
  // The best ones by Young and Daly where something fails; the one in use where it is given, or one of these.
  std::optional<double> checkpoint_interval_s, young_interval_s, daly_interval_s;
  double checkpoint_stall_s = 0;
  bool saves = true;      // false: these four say nothing
  RunSpread mtbf_h;       // of its time since it first started, over its interruptions, where there were any
  RunSpread end_s;        // of its work, or of the time; unless it arrives after that
  double done = 0;        // share of the courses in which its work was done
  bool has_work = false;  // false: it goes on until the end
};

struct ClusterFigures {
  std::int64_t runs = 0;
  int nodes = 0, devices = 0, spares = 0;
  double duration_s = 0;
  std::vector<std::string> kinds;
  std::vector<ClusterJobFigures> jobs;
  RunSpread effective;  // productive node time of all jobs over the node time that they held or waited
  RunSpread interruptions;
  RunSpread allocation;  // node time that jobs held, of all
  RunSpread down;        // node time in repair, of all
  RunSpread least_free;  // nodes
  RunSpread energy_j;    // at the meter
  RunSpread cost_usd;    // 0 when prices are not known
  RunSpread tokens;      // of productive time; 0 when not known
};

// Courses by seeds that follow from `seed`, side by side.
ClusterFigures cluster_figures(const ClusterPlan& plan, std::uint64_t seed);

}  // namespace moebius
