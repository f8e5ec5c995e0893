// The cost of an op that runs as several kernels, one after the other.
#pragma once

#include "workloads/cost/cost_source.h"

namespace moebius {

class KernelSum {
 public:
  // The longest kernel speaks for where the figure is known from.
  void add(const Cost& kernel) {
    if (kernel.seconds >= longest_) {
      longest_ = kernel.seconds;
      sum_.origin = kernel.origin;
      sum_.error = kernel.error;
      sum_.watts = kernel.watts;
    }
    sum_.seconds += kernel.seconds;
    sum_.memory_bytes += kernel.memory_bytes;
  }
  const Cost& sum() const { return sum_; }

 private:
  Cost sum_;
  double longest_ = 0;
};

}  // namespace moebius
