// A run as a picture of lanes over time, small enough for a page: what each class of ranks did, column by
// column of pixels.
#pragma once

#include <optional>
#include <string>

#include "workloads/schedule/span_columns.h"

namespace moebius::viz {

struct LanesPicture {
  std::string svg;      // empty: the timeline kept no ops
  std::string caption;  // what is drawn and what was left out, in words
};

// Time runs from 0 to `until`, or to the end of the run. At most `most_classes` classes of ranks, evenly
// chosen.
LanesPicture lanes_picture(const SpanColumns& spans, std::optional<Time> until = {}, int most_classes = 16);

}  // namespace moebius::viz
