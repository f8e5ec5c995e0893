// Durations counted in buckets that grow with them, so that memory does not grow with their number.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/figures.h"

namespace moebius {

// 1,024 buckets an octave above a microsecond: a percentile is exact to 0.1%, or to 1 ns below 1 us, and
// never outside of the durations. The mean is exact.
class LatencyHistogram {
 public:
  void add(Time duration, std::int64_t count = 1);
  std::int64_t count() const { return count_; }
  double mean() const;  // seconds; 0 when empty
  // Of all durations in order, the one at `share` of the way from the first to the last, 0 <= share <= 1, in
  // seconds; between two of them in proportion, as spread_of() has it. 0 when empty.
  double at(double share) const;
  Spread spread() const;
  void merge(const LatencyHistogram& other);

 private:
  std::vector<std::int64_t> buckets_;
  std::int64_t count_ = 0;
  double sum_ = 0;                                      // nanoseconds
  std::uint64_t least_ = ~std::uint64_t{0}, most_ = 0;  // the same
};

}  // namespace moebius
