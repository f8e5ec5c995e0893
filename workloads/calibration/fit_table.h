// Tables of thousands of rows that scatter, condensed: few grid points, and at each the value that runs
// between the rows around it.
#pragma once

#include "workloads/calibration/condense.h"

namespace moebius {

// The grid is the one that tells rows best that the fit did not see; among equally good ones the smallest.
// Values minimise the sum of absolute relative errors of all rows, so that single outliers move nothing.
// Repeated shapes become their median. One row in five is kept out and tells the held-out error, as in
// lay_table(). Without sites when no row is possible: `rejected` says why.
ProfileTable fit_table(TableDraft draft, const Accelerator& reference);

}  // namespace moebius
