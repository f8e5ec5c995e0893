// How loaded each expert of each layer was in a service, as a picture.
#pragma once

#include <string>

#include "workloads/report/report.h"

namespace moebius {

// A band for each pool, a row for each layer, a column for each expert: token copies over the layer's mean,
// as a share of the largest such ratio. Empty where no experts were counted.
std::string experts_svg(const Report& report);

}  // namespace moebius
