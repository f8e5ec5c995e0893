// Two runs of the same schedule, joined by (submission, op, member rank).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/schedule/timeline.h"

namespace moebius {

struct KindError {
  OpKind kind;
  std::int64_t count = 0;
  double median = 0, p90 = 0, worst = 0, bias = 0;  // relative difference of durations, b over a
  double seconds_a = 0, seconds_b = 0;
};

struct Comparison {
  std::int64_t joined = 0, only_a = 0, only_b = 0;
  std::int64_t different_ops = 0;     // same key, other kind, shape or payload
  std::int64_t order_violations = 0;  // a lane of b runs its ops in another order than that of a
  Time makespan_a, makespan_b;
  std::vector<KindError> kinds;       // by seconds_a, descending
  std::vector<std::string> first_differences;  // at most ten sentences
  bool same_structure() const { return only_a == 0 && only_b == 0 && different_ops == 0 && order_violations == 0; }
};

Comparison compare(const MappedTimeline& a, const MappedTimeline& b);
std::string to_text(const Comparison& comparison, const std::string& name_a, const std::string& name_b);

}  // namespace moebius
