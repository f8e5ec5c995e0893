// Which of the rows of its lane a span stands on, where spans of a lane overlap (passes of two microbatches,
// iterations of several instances).
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/span_columns.h"

namespace moebius::viz {

class OverlapParts {
 public:
  explicit OverlapParts(const SpanColumns& spans);  // input_error as LaneSpans

  std::int32_t of(std::size_t span) const { return parts_.empty() ? 0 : parts_[span]; }
  std::int32_t most() const { return most_; }  // rows of a lane

 private:
  std::vector<std::int32_t> parts_;  // by span; empty: all stand on the first row
  std::int32_t most_ = 1;
};

}  // namespace moebius::viz
