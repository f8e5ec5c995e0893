// Expert layers of AIConfigurator's database as questions to the model.
#include <filesystem>

#include "workloads/calibration/csv.h"
#include "workloads/calibration/experts/expert_rows.h"
#include "workloads/calibration/model/model_rows.h"

namespace moebius {
namespace {

constexpr std::uint64_t kOneIn = 23;  // of 6,000 to 20,000 a chip, format and stack

ModelRow model_row(const ExpertRow& row, const std::string& format, const std::string& stack, int cores) {
  ModelRow out;
  out.format = format;
  out.stack = stack;
  out.microseconds = row.microseconds;
  out.rows = {row.routings, &row.routings->front()};
  out.kernels = expert_kernels(row.layer, row.tokens, *out.rows, cores);
  return out;
}

}  // namespace

// Of rows that are means of several routings the first one stands for all.
std::vector<ModelRow> expert_model_rows(const std::string& directory, const Accelerator& chip) {
  const std::string system = database_system(chip);
  const std::string file = directory + "/kernels/moe.csv.gz";
  if (system.empty() || !std::filesystem::exists(file)) return {};
  const Csv csv(file, system);
  DrawnRoutings routings;
  std::vector<ModelRow> rows;
  for (const CsvRow& row : csv.rows()) {
    const ExpertFormat* format = find_expert_format(csv.text(row, "dtype"));
    if (format == nullptr || !in_sample(row.text, kOneIn) || !reason_against(csv, row).empty()) continue;
    const ExpertRow measured = expert_row(csv, row, *format, routings);
    if (measured.routings)
      rows.push_back(model_row(measured, format->name,
                               csv.text(row, "backend") + "-" + csv.text(row, "version"), chip.cores));
  }
  return rows;
}

}  // namespace moebius
