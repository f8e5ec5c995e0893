// What has been measured, on file: a line for each op, a JSON object with its key, its device and what was
// found. An interrupted run finds there what it need not measure again.
#pragma once

#include <string>
#include <vector>

#include "workloads/cost/op_bench.h"
#include "workloads/cost/op_key.h"

namespace moebius {

struct JournalLine {
  std::string device;
  OpKey key;
  OpMeasurement measured;
};

inline constexpr std::size_t kMostJournalLines = 100000;

// Empty when there is no such file. input_error "FILE:LINE: ..." for a line that is none of ours, a number
// out of range, or more lines than kMostJournalLines.
std::vector<JournalLine> load_journal(const std::string& path);

// Replaces the file. run_error when it cannot be written.
void save_journal(const std::string& path, const std::vector<JournalLine>& lines);

}  // namespace moebius
