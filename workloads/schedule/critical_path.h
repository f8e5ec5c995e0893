// What a run's end waited for, and what two runs of one schedule differ in there.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/op_kind.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

// A stretch of the critical path that one op fills.
struct PathPiece {
  Span span;
  Time from, to;  // to: where the op after it on the path began, at most the span's end
};

// Read off the spans alone, backwards from the last end: before an op (before the transfer of a communication
// op, whose waiting for peers is not its own work) stands the op that ended last, whoever's it was: what a
// rank waited for is what ended when it went on. Of several that ended together, one of the same lane comes
// first, then one of the same rank, each only when the op did not wait for its peers; then the latest issued.
// On a clock of events (simulated, replayed) an op starts exactly when what it waited for ends, and the path
// has no gaps but at its beginning; on a device's clock gaps are launches and the host.
struct CriticalPath {
  std::vector<PathPiece> pieces;  // in the order of time; they do not overlap
  Time gaps;                      // together with the pieces: the makespan
  Time makespan;
};
CriticalPath critical_path(const MappedTimeline& run);

// Seconds on the critical paths of both runs.
struct PathShare {
  OpKind kind = OpKind::kInput;
  double a = 0, b = 0;
};

// One op of the fragments of one name, over all the times that it stands on a path (every rank, step and
// microbatch); `op` has the sizes of the first of them.
struct PathOp {
  OpRow op;
  std::string fragment;
  std::int64_t times_a = 0, times_b = 0;
  double a = 0, b = 0;  // seconds
};

// The makespan of b less that of a is the sum over all ops and the gaps of (b - a).
struct PathDifference {
  double makespan_a = 0, makespan_b = 0, gaps_a = 0, gaps_b = 0;  // seconds
  std::vector<PathShare> kinds;                                   // by the larger of a and b, descending
  std::vector<PathOp> ops;  // the ten with the largest |b - a|, that one first
  double rest = 0;          // the sum of (b - a) over all other ops
};

// Of two runs of the same schedule (Comparison::same_structure()).
PathDifference compare_paths(const MappedTimeline& a, const MappedTimeline& b);
std::string to_text(const PathDifference& difference);

}  // namespace moebius
