// The same op of another run of the schedule.
#pragma once

#include <cstddef>
#include <optional>

#include "workloads/schedule/span_columns.h"

namespace moebius::viz {

// Of the submission of the same number, the op that does the same work and is there as often before as of its
// own: ops that one of the runs alone has may stand between. None where there is none, or where submissions
// are kept and no ops.
std::optional<std::size_t> twin_of(const SpanColumns& run, std::size_t span, const SpanColumns& other);

}  // namespace moebius::viz
