// How fast each device of a run computes, and what that means for ranks that stand for others.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "hw/speed_variation.h"
#include "workloads/schedule/layout.h"
#include "workloads/training/plan.h"

namespace moebius {

class DeviceSpeeds {
 public:
  DeviceSpeeds(const SpeedVariation& variation, std::uint64_t seed);
  double of(std::int32_t device) const;  // against its kind; > 0

 private:
  SpeedVariation variation_;
  std::uint64_t seed_;
  std::map<std::int32_t, double> slow_;
};

// The slowest of `devices`, the first of them; at least one.
std::int32_t slowest_device(const DeviceSpeeds& speeds, std::span<const std::int32_t> devices);

// Columns (see columns.h) do not wait for each other before gradients are reduced at the end of a step, so
// that the slowest one ends it. Inside a column, ranks of one stage wait for each other in every layer: they
// go at the pace of the slowest. The `most` slowest columns of a folded plan get kinds of their own beyond
// `kinds`; each other kind goes at the pace of its slowest column. Columns are ordered by the pace of their
// slowest stage.
std::vector<std::int32_t> with_slow_columns(const TrainingPlan& plan, std::vector<std::int32_t> kinds,
                                            const DeviceSpeeds& speeds, int most = 8);

// Sets Layout::pace_of_class: unfolded that of the class's device; folded, of the slowest column of its kind,
// that of the column's slowest rank in the stage.
void set_paces(const TrainingPlan& plan, const DeviceSpeeds& speeds, Layout& layout);

}  // namespace moebius
