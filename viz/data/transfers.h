// Which receive took what which send gave: those of one step, microbatch, phase, size and match; of several
// (replicas, or a timeline without matches) those that end first belong together.
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

// How long span i of communication waits for its peers before anything moves, in ns; 0 of other ops.
std::int64_t waiting_of(const SpanColumns& spans, std::size_t i);

}  // namespace moebius::viz
