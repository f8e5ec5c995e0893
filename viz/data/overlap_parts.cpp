#include "viz/data/overlap_parts.h"

#include <algorithm>

#include "viz/data/lane_spans.h"

namespace moebius::viz {

OverlapParts::OverlapParts(const SpanColumns& spans) {
  const LaneSpans lanes(spans);
  for (const LaneRow& row : lanes.rows()) most_ = std::max(most_, row.part + 1);
  if (most_ == 1) return;
  parts_.resize(spans.size());
  for (const LaneRow& row : lanes.rows())
    for (std::size_t slot = row.first; slot < row.last(); ++slot) parts_[lanes.span(slot)] = row.part;
}

}  // namespace moebius::viz
