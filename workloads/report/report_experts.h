// What a report says of the experts of a service: how unevenly they were loaded, and what placing them did.
#pragma once

#include <string>

#include "workloads/report/report_serving.h"

namespace moebius {

// By pool; nothing where tokens choose evenly or no ranks share experts.
FigureTree experts_tree(const ServiceFigures& service);
std::string experts_text(const ServiceFigures& service);

}  // namespace moebius
