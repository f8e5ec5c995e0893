// The first course of a cluster's queues as a drawing: cards by queue over time, power, and a row a job.
#pragma once

#include <string>

#include "workloads/report/report.h"

namespace moebius {

// An SVG file's text; empty when the report has no queues, or their course was not kept.
std::string queues_svg(const Report& report);

}  // namespace moebius
