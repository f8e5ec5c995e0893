// Loss curves of two runs, step by step: how far two precisions, plans or executors train alike. The
// schedules may differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace moebius {

struct LossCurve {
  int first_step = 0;
  std::vector<double> losses;  // by step from there on; empty: the run computed no numbers
};

// Of a run's directory or timeline, from its report.json; empty when there is none (a timeline alone, a
// simulation).
// input_error for a report that is damaged.
LossCurve loss_curve(const std::string& run);

struct LossComparison {
  int first_step = 0, num_steps = 0;  // that both runs have
  double final_a = 0, final_b = 0;    // of the last of them
  double mean = 0, largest = 0;       // of |b - a| / a
  int largest_step = 0;
  double smooth_a = 0, smooth_b = 0;  // means of the last `smoothed` steps
  int smoothed = 0;
  double smooth_largest = 0;           // of |b - a| / a, both being means of `smoothed` steps
  std::optional<int> first_different;  // not equal to the bit
  std::optional<int> first_apart;      // further apart than kLossTolerance
};

inline constexpr double kLossTolerance = 0.01;  // of |b - a| / a in one step

// Nothing when the runs have no step in common.
std::optional<LossComparison> compare_losses(const LossCurve& a, const LossCurve& b);

// The comparison in words, with a chart of both curves.
std::string to_text(const LossComparison& comparison, const LossCurve& a, const LossCurve& b);

}  // namespace moebius
