// Rows of measured servers beside what was simulated of them, and how far both are apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "workloads/job.h"
#include "workloads/perform/perform.h"
#include "workloads/validation/servers/server_row.h"

namespace moebius {

struct ServerResult {
  ServerRow row;
  std::string left_out = {};  // why it was not simulated; empty: it was
  double ttft = 0, tpot = 0;  // seconds, means of ours
  double ttft_median = 0, tpot_median = 0;
  std::int64_t devices = 0;  // that it was simulated on
  bool scored() const { return left_out.empty() && !row.for_fit; }
  double ttft_error() const { return ttft / row.ttft - 1; }
  double tpot_error() const { return tpot / row.tpot - 1; }
};

// Simulates those rows that can be, on all cores, rows of one configuration after each other. `most` > 0: so
// many of them at most, the first by the hash of seed and key.
std::vector<ServerResult> simulate_servers(const std::vector<ServerRow>& rows, const Library& library,
                                           const StartExecutor& start, std::int64_t most, std::uint64_t seed);

struct ErrorSummary {
  int rows = 0;
  double median = 0, p90 = 0;  // of absolute relative errors
  double bias = 0;             // median of signed ones
};

struct ServerGroup {
  std::string by, name;  // "framework", "vllm"
  ErrorSummary ttft, tpot;
};

// How well configurations of one model on one system are put in order by throughput.
struct RankCorrelation {
  std::string system, model;
  int rows = 0;
  double spearman = 0;
};

struct ServerSummary {
  int rows = 0, scored = 0, for_fit = 0;  // for_fit: simulated, and not scored
  std::map<std::string, int> left_out;    // by reason
  std::vector<ServerGroup> groups;        // all; by system, framework, model, mode, format
  std::vector<RankCorrelation> ranks;     // of three rows and more
  double rank_correlation = 0;            // mean of them, by rows
};

ServerSummary summary_of(const std::vector<ServerResult>& results);

std::string servers_text(const std::vector<ServerResult>& results);
std::string servers_json(const std::vector<ServerResult>& results);  // one object, ends with a newline

}  // namespace moebius
