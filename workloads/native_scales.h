// Formats whose scales the units of a chip multiply, or no kernel for it.
#pragma once

#include "workloads/job.h"

namespace moebius {

// input_error for products with a scale for 32 elements (MXFP8) on chips whose units take none: no library
// has them there, and nothing is known of their time. Executors compute what such a plan learns all the same.
void require_native_scales(const Job& job);

}  // namespace moebius
