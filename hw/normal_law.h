// The normal distribution.
#pragma once

namespace moebius {

// The number of standard deviations above which a share `above` of it lies; 0 < above < 1, to 1e-15.
double normal_quantile(double above);

// The expected largest of `count` >= 1 independent draws, in standard deviations: Blom, Statistical Estimates
// and Transformed Beta-Variables, 1958; 0.3% below the exact number for 64 (Harter 1961).
double expected_largest(int count);

}  // namespace moebius
