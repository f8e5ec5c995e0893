// Published times of dispatch and combine kernels as questions to the exchange model.
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "workloads/cost/exchange_kernels.h"

namespace moebius {

inline constexpr int kAscendDies = 2;  // of a package, each of them a rank of its kernels

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
// included. On Ascend within a super-node it counts the rows of all chosen experts, at two bytes a value even
// of a dispatch in INT8 (tests/python/deepep/test_intranode.py of sgl-project/sgl-kernel-npu; its pull
// request 177 prints both, 115.81 GB/s and 4,036 us: 8 rows of 14,336 bytes for each of 4,096 tokens). Tokens
// draw their experts alike; DeepEP's own tests draw them from at most four nodes. Missing tables give no
// rows. input_error for a damaged one.
std::vector<ExchangeRow> read_exchange_rows(const std::string& directory, const Catalog& catalog);

}  // namespace moebius
