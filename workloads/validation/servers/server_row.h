// A table of measured servers: a row tells what served what, and the mean times to the first and per further
// token. Columns as in NVIDIA's AIConfigurator database (ai-dynamo/aiconfigurator, "silicon data").
#pragma once

#include <string>
#include <vector>

#include "workloads/calibration/csv.h"

namespace moebius {

// How the workers of a phase are spread over devices; 0: the row does not tell.
struct ServerDegrees {
  int workers = 0, batch = 0, tp = 0, pp = 0, dp = 0, moe_tp = 0, moe_ep = 0;
};

struct ServerRow {
  int line = 0;            // of the file
  std::string key;         // columns system .. decode_moe_ep_size joined by commas: what was measured
  std::string unreadable;  // what is wrong with a cell, in words that rows share; empty: nothing is
  std::string system, backend, version, model, precision, mode, gemm, moe, dump;
  std::string measured;  // the day, "2026-01-14"; may be empty
  int input = 0, output = 0, users = 0;
  ServerDegrees both, prefill, decode;  // of aggregated servers; of disaggregated ones
  double ttft = 0, tpot = 0;            // seconds
  // Host costs of frameworks are fitted to these and to no others: sha256(key) mod 10 = 0. Not scored.
  bool for_fit = false;

  bool apart() const { return mode == "disagg"; }
  // output tokens of all users a second: what the table calls throughput.
  double throughput(double its_ttft, double its_tpot) const {
    return users * static_cast<double>(output) / (its_ttft + (output - 1) * its_tpot);
  }
};

// Whether it has the columns that every such table has, in any order.
bool is_server_table(const Csv& table);
// Those that a table lacks which has most of them; empty otherwise.
std::vector<std::string> missing_server_columns(const Csv& table);
std::vector<ServerRow> server_rows(const Csv& table);

}  // namespace moebius
