#include <algorithm>

#include <fmt/format.h>

#include "workloads/report/number_text.h"
#include "workloads/study/mixed/efficiency_matrix.h"

namespace moebius {
namespace {

const EfficiencyRow* row_like(const EfficiencyMatrix& matrix, const EfficiencyRow& row) {
  const auto same = [&](const EfficiencyRow& other) {
    return other.op == row.op && other.shape == row.shape;
  };
  const auto found = std::find_if(matrix.rows.begin(), matrix.rows.end(), same);
  return found == matrix.rows.end() ? nullptr : &*found;
}

// Rows of all, in the order of those that have most of them.
std::vector<EfficiencyRow> all_rows(const std::vector<EfficiencyMatrix>& matrices) {
  std::vector<EfficiencyRow> rows;
  const auto most = std::max_element(
      matrices.begin(), matrices.end(),
      [](const EfficiencyMatrix& a, const EfficiencyMatrix& b) { return a.rows.size() < b.rows.size(); });
  for (const EfficiencyRow& row : most->rows) rows.push_back(row);
  return rows;
}

std::string cell(const EfficiencyRow* row) {
  if (row == nullptr) return fmt::format(" {:>28}", "-");
  return fmt::format(" {:>6.1f}% {:<8.8}{:>12.12}", 100 * row->efficiency(), to_string(row->kind),
                     row->source);
}

}  // namespace

std::string matrix_text(const std::vector<EfficiencyMatrix>& matrices) {
  std::string text = fmt::format("{:<30} {:<46}", "share of the peak reached", "shape");
  for (const EfficiencyMatrix& matrix : matrices) text += fmt::format(" {:>28}", matrix.chip);
  text += "\n";
  for (const EfficiencyRow& row : all_rows(matrices)) {
    text += fmt::format("{:<30} {:<46}", row.op, row.shape);
    for (const EfficiencyMatrix& matrix : matrices) text += cell(row_like(matrix, row));
    text += "\n";
  }
  return text;
}

}  // namespace moebius
