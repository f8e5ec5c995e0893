// The constants of dispatch and combine kernels that ship: hw/catalog/exchanges.json.
#pragma once

#include <string>
#include <vector>

#include "hw/accelerator.h"
#include "workloads/cost/exchange_model.h"

namespace moebius {

struct ExchangeQuestion {
  ExchangeFamily family = ExchangeFamily::kThroughput;
  bool combine = false;
  bool between_nodes = false;
};

// The rows of a file of the form of hw/catalog/exchanges.json; errors as Reader's.
std::vector<ExchangeKernel> read_exchanges(const Document& document);
const std::vector<ExchangeKernel>& shipped_exchanges();
// The text of such a file; reads back as the same rows.
std::string exchanges_text(const std::vector<ExchangeKernel>& kernels);

// The kernel of a chip. Without rows of the chip itself, those of the first of its architecture, else the
// first of all (Hopper), as an estimate: the result then has no rows and is of another chip.
ExchangeKernel exchange_kernel(const Accelerator& chip, ExchangeQuestion question);

}  // namespace moebius
