// Expert layers of the kernel database as rows of a fit.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "workloads/calibration/csv.h"
#include "workloads/calibration/experts/expert_fit.h"
#include "workloads/calibration/experts/expert_load.h"

namespace moebius {

// A number format of moe.csv.gz: of the products, and of the weights where they are kept in another.
struct ExpertFormat {
  const char* name;
  DType dtype;
  std::optional<DType> stored;
  const char* variant;  // of the stack, when it has a better table of that type
  const char* note;
};
const std::vector<ExpertFormat>& expert_formats();  // best first
const ExpertFormat* find_expert_format(const std::string& name);

// Routings by what they are drawn from; each drawn once.
class DrawnRoutings {
 public:
  // Of "balanced" or "power_law_1.2"; null for another distribution.
  Routings of(const ExpertGroup& group, const std::string& distribution);

 private:
  std::map<std::tuple<std::int64_t, int, int, int, int, std::string>, Routings> known_;
};

// Why a row is not what its columns say, or "".
std::string reason_against(const Csv& csv, const CsvRow& row);

// One row of moe.csv.gz, or of wideep_moe.csv.gz: there only the tokens that come to the rank pass through
// it. Its routings are null when its distribution is unknown.
ExpertRow expert_row(const Csv& csv, const CsvRow& row, const ExpertFormat& format, DrawnRoutings& routings);

}  // namespace moebius
