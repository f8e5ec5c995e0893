// What a report says of the course of a service: where iterations lost time, and how full its pools were over
// time.
#pragma once

#include <string>

#include "workloads/report/report_serving.h"

namespace moebius {

// Of a pool with several replicas or placed experts: seconds by which its iterations were longer than they
// could have been, and the same times the sequences that waited.
FigureTree stalls_tree(const ServicePoolFigures& pool);
std::string stalls_text(const ServiceFigures& service);

// By pool: what a moment of each step of the time showed.
FigureTree series_tree(const ServiceFigures& service);

}  // namespace moebius
