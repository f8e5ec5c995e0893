// Two runs of the same schedule, joined by (submission, op, member rank).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/schedule/timeline.h"

namespace moebius {

// Whose times errors are shares of: those of a, where b is another run; those of b, where a foretold it.
enum class ErrorBase : std::uint8_t { kA, kB };

// Durations of one op kind in both runs; of communication, the transfers without the waiting for peers.
struct KindError {
  OpKind kind = OpKind::kInput;
  std::int64_t count = 0;
  double median = 0, p90 = 0, worst = 0;  // of |b - a| over the base, op by op (which is at least 1 ns)
  double bias = 0;  // of the other run's seconds over the base's, less 1; 0 when the base has none
  double seconds_a = 0, seconds_b = 0;
};

struct Comparison {
  ErrorBase base = ErrorBase::kA;
  bool same_schedule = true;  // by the hashes that the runs noted
  std::int64_t joined = 0;    // of the same work
  std::int64_t only_a = 0, only_b = 0;
  std::int64_t different_ops = 0;     // same key, other work
  std::int64_t order_violations = 0;  // times that a lane of b starts an op before one that a starts earlier
  Time makespan_a, makespan_b;
  int steps_a = 0, steps_b = 0;  // as whole_steps() says
  double median_error =
      0;  // over all joined ops: |a - b| / b, how far a prediction a was off (b of at least 1 ns)
  std::vector<KindError> kinds;                // by seconds_a, descending
  std::vector<std::string> first_differences;  // at most ten sentences
  // Training of other lengths: what a step takes tells them apart, not what all of them take.
  bool by_step() const { return steps_a > 0 && steps_b > 0 && steps_a != steps_b; }
  bool same_structure() const {
    return same_schedule && only_a == 0 && only_b == 0 && different_ops == 0 && order_violations == 0;
  }
};

// Whether two ops do the same: kind, type, lane, group, shape and payload.
bool same_work(const OpRow& a, const OpRow& b);

// Steps of training whose timeline kept all of its spans; 0: of other runs, or cut ones.
int whole_steps(const Timeline& tables);

// Folded runs compare with runs folded in the same way: a class stands under its first rank. Runs of other
// schedules are joined as far as their keys go, and first_differences says in what they differ. A run that
// did not keep its ops (timeline_detail) is an input_error.
Comparison compare(const MappedTimeline& a, const MappedTimeline& b, ErrorBase base = ErrorBase::kA);
std::string to_text(const Comparison& comparison, const std::string& name_a, const std::string& name_b);

}  // namespace moebius
