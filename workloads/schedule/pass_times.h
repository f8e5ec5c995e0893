// What the ranks of a training step spend their time on, pass by pass: forward, backward, the gradients of
// weights, a forward beside a backward pass, the optimizer, and nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/fragment.h"

namespace moebius {

// Seconds per rank, averaged over all ranks. A pass lasts from its first compute op's start to its last one's
// end, whatever it waits for in between; the optimizer from the end of the last pass to the end of its last
// op, waiting for gradients included; `between` is the rest. The sum is the makespan.
struct PassSeconds {
  double forward = 0, backward = 0, weight = 0, overlapped = 0, optimizer = 0, between = 0;
};

class PassTimes {
 public:
  explicit PassTimes(std::vector<std::int32_t> class_sizes);

  // A submission under way.
  struct Pass {
    Phase phase = Phase::kForward;
    bool pair = false;
    Time start = kForever, end = {};  // of its compute ops
    void add(Time op_start, Time op_end) {
      start = std::min(start, op_start);
      end = std::max(end, op_end);
    }
  };
  // Of a class, when the last op has ended, at `end`. The optimizer ends after all passes of its step.
  void finished(std::int32_t rank_class, const Pass& pass, Time end);
  PassSeconds seconds(Time makespan) const;

 private:
  struct Sums {
    std::int64_t forward = 0, backward = 0, weight = 0, overlapped = 0, optimizer = 0;
    Time last_end;
  };

  std::vector<std::int32_t> sizes_;
  std::vector<Sums> sums_;
};

}  // namespace moebius
