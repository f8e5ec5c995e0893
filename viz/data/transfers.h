// Which receive took what which send gave. A timeline does not say it, so it is read off the spans: of the
// sends and receives of one step, microbatch, phase and size, those that end first belong together, as a
// microbatch goes from stage to stage one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/span_columns.h"

namespace moebius::viz {

struct Transfer {
  std::uint32_t send = 0, recv = 0;  // spans
};

// By send. Sends without a receive, as of a window that ends between them, are left out.
std::vector<Transfer> transfers_of(const SpanColumns& spans);

}  // namespace moebius::viz
