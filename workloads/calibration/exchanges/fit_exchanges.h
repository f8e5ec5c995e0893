// Constants of dispatch and combine kernels from published times (`moebius calibrate --from DIR --fit
// exchanges --out hw/catalog/exchanges.json`).
#pragma once

#include <vector>

#include "workloads/calibration/exchanges/exchange_rows.h"

namespace moebius {

double model_seconds(const ExchangeKernel& kernel, const ExchangeRow& row);

// One kernel for each chip, family and direction that has rows, within a node and between nodes. Only rows of
// the smallest group count (one node, and two nodes for what the NIC adds; 8 ranks of a super-node). A chip
// without rows between nodes gets there the network's constants of the chip that has some, and its own of the
// node, with `rows` 0. Deterministic.
std::vector<ExchangeKernel> fit_exchanges(const std::vector<ExchangeRow>& rows);

// What the rows say that a kernel was fitted to: the same chip, family, direction and reach, fewest ranks.
std::vector<const ExchangeRow*> fitted_rows(const std::vector<ExchangeRow>& rows, const std::string& chip,
                                            const ExchangeQuestion& question);

// Fits, writes the file under a temporary name and renames it. input_error when `from` has no table. Returns
// how many kernels it holds.
int fit_exchange_file(const std::string& from, const Catalog& catalog, const std::string& out);

}  // namespace moebius
