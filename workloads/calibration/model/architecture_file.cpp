#include "workloads/calibration/model/architecture_file.h"

#include <fmt/format.h>

#include <map>

#include "hw/error.h"
#include "workloads/calibration/model/fit_architecture.h"
#include "workloads/calibration/model/model_error.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

// Where a row states the error of a kind of kernel.
float& error_of(Architecture& row, std::string_view kind) {
  if (kind == "dense GEMM") return row.error_gemm;
  return kind == "experts" ? row.error_experts : row.error_attention;
}

// Kinds that share a field are taken together.
void state_errors(Architecture& row, const std::vector<ModelErrors>& groups) {
  std::map<float*, std::vector<double>> fields;
  for (const ModelErrors& group : groups) {
    if (group.architecture != row.name) continue;
    std::vector<double>& errors = fields[&error_of(row, model_row_kinds()[group.kind].name)];
    errors.insert(errors.end(), group.errors.begin(), group.errors.end());
  }
  for (const auto& [field, errors] : fields)
    if (!errors.empty()) *field = static_cast<float>(median(magnitudes(errors)));
}

}  // namespace

int fit_architecture_file(const std::string& from, const Catalog& catalog, const std::string& out) {
  const std::vector<MeasuredChip> chips = read_measured_chips(from, catalog);
  const std::vector<ModelErrors> errors = model_errors(chips);
  std::vector<Architecture> rows = shipped_architectures();
  int fitted = 0;
  for (Architecture& row : rows) {
    std::vector<const MeasuredChip*> own;
    for (const MeasuredChip& chip : chips)
      if (find_architecture(chip.chip.architecture)->generation == row.generation) own.push_back(&chip);
    if (own.empty()) continue;
    row = fit_constants(row, own);
    row.estimated = false;
    state_errors(row, errors);
    ++fitted;
  }
  write_file(out, architectures_text(rows));
  return fitted;
}

}  // namespace moebius
