// Measured rows that a table is told about by nothing but its errors on them.
#pragma once

#include <vector>

#include "hw/profile.h"

namespace moebius {

// Of relative errors, one a row, as profiles write them: in ten-thousandths. None: zeros.
HeldOut held_out_of(std::vector<double> errors);

}  // namespace moebius
