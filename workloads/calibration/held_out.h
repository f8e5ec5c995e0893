// Measured rows that a table is told about by nothing but its errors on them.
#pragma once

#include <vector>

#include "hw/profile.h"

namespace moebius {

inline constexpr std::size_t kHeldOutQuantiles = 20;

// Of relative errors with their signs (told over measured, less one), one a row; figures as profiles write
// them, in ten-thousandths. None: zeros.
HeldOut held_out_of(std::vector<double> errors);

}  // namespace moebius
