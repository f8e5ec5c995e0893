// NVIDIA AIConfigurator's database of kernels, as it stands in kernels/*.csv.gz beside the other tables: tens
// of thousands of rows a chip and table, from graph replays of serving frameworks' kernels. What its readers
// (condense_*.cpp) share.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workloads/calibration/harvest.h"

namespace moebius {

// The system of the database that is this chip, if any.
std::optional<std::string> system_of(const Harvest& harvest);

// A numeric format of the database: how ops name it, and how it differs from other formats of that name.
struct KernelFormat {
  const char* name;
  std::optional<DType> dtype;
  const char* variant;  // of the stack, when the stack has a better table of that type
  const char* note;
};

const std::vector<KernelFormat>& kernel_formats();  // best first
// Of the row's `column`; kernel_formats().size() for an unknown one.
std::size_t format_of(const Csv& csv, const CsvRow& row, const char* column);

std::string stack_of(const Csv& csv, const CsvRow& row);  // "sglang-0.5.14"
// Of a serving framework: ours first, whose GEMMs scatter half as much as the others'.
std::size_t rank_of(const std::string& backend);

void add_database_source(Harvest& harvest);

// Drafts of one file in the order in which a look-up shall ask them: by backend, then as `kind` counts.
struct DraftKey {
  std::size_t backend = 0;
  std::string stack;
  std::size_t kind = 0;
  auto operator<=>(const DraftKey&) const = default;
};

struct Drafts {
  std::map<DraftKey, TableDraft> tables;
  std::map<std::string, std::map<std::string, int>> left_out;  // by stack and reason

  void add_to(Harvest& harvest);  // fits each; the reasons are told in the first table of the stack
};

}  // namespace moebius
