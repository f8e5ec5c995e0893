// How far the analytic model alone is from measured kernels, every chip told with constants that were fitted
// on others (`moebius calibrate --from DIR --model-errors`).
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "workloads/calibration/model/model_rows.h"

namespace moebius {

// The rows of one chip, kind of kernel, number format and stack, told with constants of other chips.
struct ModelErrors {
  std::string chip, architecture;
  std::size_t kind = 0;  // of model_row_kinds()
  std::string format, stack;
  std::string fitted_on;  // "h200-sxm"; a vendor; empty for a chip alone in its vendor, which has no errors
  std::size_t rows = 0;
  std::vector<double> errors;  // predicted / measured - 1, ascending
};

// By chip in the order of `chips`, then by kind, format and stack. Chips alone in their architecture are told
// with constants of their vendor's other chips, those alone in their vendor not at all.
std::vector<ModelErrors> model_errors(const std::vector<MeasuredChip>& chips);

// The errors of the tables in `from` as a table in Markdown: rows, median, nine in ten, bias (the median of
// the signed error), the goal of the kind and whether it is met. input_error when `from` has no table.
std::string model_error_table(const std::string& from, const Catalog& catalog);

// Of signed errors in ascending order, and of any at all.
double median(const std::vector<double>& ascending);
std::vector<double> magnitudes(const std::vector<double>& errors);  // ascending

}  // namespace moebius
