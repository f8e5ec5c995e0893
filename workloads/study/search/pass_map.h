// A pass of a pipeline rank as a clock sees it from outside: how much later than what it waits for it is
// done. Max-plus algebra: an end is the latest of what it waits for, each with the longest way from there.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "workloads/schedule/fragment.h"

namespace moebius {

struct PassMap {
  static constexpr double kNever = -std::numeric_limits<double>::infinity();
  // The compute lane comes free; the message of the stage before, of the stage after, has been sent.
  enum In { kLane, kFromBefore, kFromAfter };
  // The compute lane comes free again; the message to the stage after, before has arrived; all ops have
  // ended.
  enum Out { kLaneEnd, kToAfter, kToBefore, kAll };
  static constexpr int kIns = kFromAfter + 1, kOuts = kAll + 1;

  // Seconds from an in to an out; kNever where the out does not wait for the in.
  std::array<std::array<double, kOuts>, kIns> way;
  std::array<double, kNumLanes> lanes{};  // busy seconds of each

  double busy() const { return lanes[static_cast<int>(Lane::kCompute)]; }
  double busiest() const;  // of all lanes
  double span() const;     // of the pass alone, from the lane's begin to its end

  PassMap() {
    for (auto& row : way) row.fill(kNever);
  }
  double end(Out out, const std::array<double, kIns>& ins) const;
};

// `seconds`: of each op. Lanes run their ops in order, an op begins when those that it depends on have ended;
// nothing that earlier passes left on other lanes is waited for, so that ends are never too late.
PassMap pass_map(const Fragment& fragment, const std::vector<double>& seconds);

}  // namespace moebius
