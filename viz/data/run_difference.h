// Two runs laid beside each other: what each kind of op took in both, and which ops differ most.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/op_kind.h"
#include "viz/data/run_data.h"
#include "workloads/report/figure_differences.h"

namespace moebius::viz {

struct KindDifference {
  OpKind kind = OpKind::kInput;
  std::int64_t count_a = 0, count_b = 0;
  double a = 0, b = 0;  // seconds; of communication the transfers, without waiting for peers
};

struct OpDifference {
  std::uint32_t span_a = 0, span_b = 0;
  double a = 0, b = 0;  // seconds
};

struct RunDifference {
  double makespan_a = 0, makespan_b = 0;  // seconds
  int steps_a = 1, steps_b = 1;           // of training of other lengths, else 1: kinds are of one step
  bool by_step() const { return steps_a != steps_b; }
  std::int64_t joined = 0, only_a = 0, only_b = 0;
  std::int64_t different = 0;  // of one place, but other work
  bool same_schedule = false;
  bool has_ops = true;        // false: one of both has nothing to join, and figures are compared instead
  FigureDifferences figures;  // of such
  std::vector<KindDifference> kinds;  // by |b - a|, descending
  std::vector<OpDifference> worst;    // joined ops by |b - a|, descending; at most kWorstTold
};
inline constexpr std::size_t kWorstTold = 100;

// Joined by (submission, op, first rank of the class) where both did the same op; runs of other schedules
// join little or nothing and are told apart by kind.
RunDifference difference_of(const RunData& a, const RunData& b);

}  // namespace moebius::viz
