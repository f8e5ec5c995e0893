// The figures of reports that an expectation may be about.
#pragma once

#include <string>

#include "hw/reader.h"

namespace moebius {

// `metric`: a dotted path. Input error at `place` with the nearest one when no report has a figure of its
// first word; what stands below it only a report tells, which says what is near, too.
void require_known_figure(const std::string& metric, const Place& place);

}  // namespace moebius
