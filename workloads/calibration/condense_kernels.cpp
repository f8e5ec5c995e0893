// NVIDIA AIConfigurator's database of kernels, as it stands in kernels/*.csv.gz beside the other tables: tens
// of thousands of rows a chip and table, from graph replays of serving frameworks' kernels. Its README says
// how they were measured and which rows are odd; what is left out here is counted with the reason.
#include <optional>

#include "workloads/calibration/kernel_database.h"

namespace moebius {
namespace {

using Key = ProfileKey;

// GEMMs of half a millisecond and more draw the board's limit: power tables of the same database.
constexpr double kPowerLimitedFrom = 500;

void read_gemm(Harvest& harvest, const std::string& system) {
  if (!harvest.has("kernels/gemm.csv.gz")) return;
  const Csv csv = harvest.open("kernels/gemm.csv.gz", system);
  Drafts drafts;
  for (const CsvRow& row : csv.rows()) {
    const std::string stack = stack_of(csv, row);
    const std::size_t format = format_of(csv, row, "dtype");
    if (format == kernel_formats().size() || !kernel_formats()[format].dtype) {
      ++drafts.left_out[stack][format == kernel_formats().size() ? "an unknown number format"
                                                                 : kernel_formats()[format].note];
      continue;
    }
    TableDraft& draft = drafts.tables[{rank_of(csv.text(row, "backend")), stack, format}];
    if (draft.rows.empty()) {
      draft.table = table_of("dense GEMM", {"gemm", "gemm_dgrad"}, *kernel_formats()[format].dtype,
                             {Key::kN, Key::kK}, {Key::kM});
      draft.table.note = kernel_formats()[format].note;
      draft.table.limited_from = kPowerLimitedFrom;
    }
    draft.rows.push_back({{csv.number(row, "n"), csv.number(row, "k")},
                          {csv.number(row, "m")},
                          csv.number(row, "latency_us"),
                          row.text});
  }
  std::string last;  // stack whose FP8 table came already
  for (auto& [key, draft] : drafts.tables) {
    const bool second = draft.table.dtype == DType::kFp8 && last == key.stack;
    draft.table.stack = key.stack + (second ? kernel_formats()[key.kind].variant : "");
    if (draft.table.dtype == DType::kFp8) last = key.stack;
  }
  drafts.add_to(harvest);
}

}  // namespace

void read_kernels(Harvest& harvest) {
  const std::optional<std::string> system = system_of(harvest);
  if (!system) return;
  read_gemm(harvest, *system);
  read_attention_kernels(harvest, *system);
}

}  // namespace moebius
