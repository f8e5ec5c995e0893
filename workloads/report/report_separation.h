// What a report says of attention and experts that stand apart, and of encoders.
#pragma once

#include <string>

#include "workloads/report/report.h"
#include "workloads/report/report_serving.h"

namespace moebius {

FigureTree separation_tree(const SeparationFigures& figures);
// "attention dp 8, experts ep 16 on 16 h100-sxm, 3 microbatches", of the line of a phase.
std::string separation_plan_text(const ServicePhase& phase, const Cluster& cluster);
// Which side waits, and for how long; ends with a newline.
std::string separation_text(const std::string& pool, const SeparationFigures& figures);

FigureTree encoder_tree(const EncoderFigures& figures);
// `share`: of the time of requests, in per cent, that they wait for encoders of their own. Ends with a
// newline.
std::string encoder_text(const EncoderFigures& figures, double share);

}  // namespace moebius
