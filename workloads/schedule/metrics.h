// Where the time went, accumulated span by span: busy time by kind, exposed and hidden communication, bubble, trust.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "hw/units.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

// Seconds per rank, averaged over all ranks of the run (a class counts with its size).
struct Breakdown {
  std::array<double, kNumOpKinds> compute{};             // compute lanes, by kind
  std::array<double, kNumOpKinds> communication{};       // busy, by kind, exposed or not
  std::array<double, kNumOpKinds> exposed{};             // of it: no compute op of the rank ran meanwhile
  std::array<double, kNumPhases> compute_by_phase{};
  double optimizer = 0;                                  // compute and exposed communication of Phase::kOptimizer
  double idle = 0;                                       // neither: the pipeline bubble and waiting for peers
};

struct Metrics {
  Time makespan;
  Breakdown breakdown;
  std::vector<Breakdown> by_class;
  double flops = 0;                                      // over all ranks
  double sent_bytes = 0;                                 // payload that left a rank, over all ranks
  std::array<double, kNumOrigins> seconds_by_origin{};   // of all busy time
  double mean_error = 0;                                 // expected relative error, weighted by time
  std::int64_t spans = 0;
};

class MetricsAccumulator {
 public:
  explicit MetricsAccumulator(std::vector<std::int32_t> class_sizes);
  // `sent` is what this span's rank sends to others (bytes). Spans of one lane come in the order of time.
  void add(const Span& span, const Op& op, double flops, double sent);
  Metrics finish(Time end);

 private:
  struct Interval { std::int64_t start, end; };
  struct Pending { Interval interval; OpKind kind; Phase phase; };
  // The compute intervals of a class that a pending communication span may still overlap.
  struct ClassState {
    Breakdown sums;
    std::deque<Interval> compute;      // merged, ascending
    std::deque<Pending> communication; // not yet settled
    std::int64_t compute_until = 0;    // all compute before this is known
    std::int64_t covered = 0;          // up to here exposed time is already counted (lanes overlap each other)
    double busy = 0;                   // compute or exposed communication
  };
  void settle(ClassState& state, std::int64_t known_until);

  std::vector<std::int32_t> sizes_;
  std::vector<ClassState> classes_;
  Metrics metrics_;
};

}  // namespace moebius
