// Published times of dispatch and combine kernels as questions to the exchange model.
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "workloads/cost/exchange_kernels.h"

namespace moebius {

struct ExchangeRow {
  std::string table;  // "deepep_ll"
  std::string chip;   // catalog id
  std::string architecture;
  ExchangeQuestion question;
  int ranks = 0;
  ExchangeLoad load;
  ExchangeMachine machine;
  double seconds = 0;
};

// All rows of the tables in `directory`, in the order of the files:
// deepep_normal and deepep_ll (kernels/*.csv.gz), deepep (H800, the latest version of each kernel),
// deepep_ascend, cloudmatrix384. Bandwidths become times by the publisher's definition of bytes: within a
// node the rows that a rank receives, between nodes one row for every distinct node of a token, its own
// included. Tokens draw their experts alike; DeepEP's own tests draw them from at most four nodes. Missing
// tables give no rows. input_error for a damaged one.
std::vector<ExchangeRow> read_exchange_rows(const std::string& directory, const Catalog& catalog);

}  // namespace moebius
