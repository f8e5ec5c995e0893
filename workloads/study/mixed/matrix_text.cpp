#include <algorithm>

#include <fmt/format.h>

#include "workloads/listing/table_text.h"
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
  if (row == nullptr) return "-";
  return fmt::format("{:.1f}% {:<7} {:>12}", 100 * row->efficiency(), to_string(row->kind), row->source);
}

// As many chips beside each other as a terminal shows; the others below them.
constexpr std::size_t kBeside = 2;

}  // namespace

std::string matrix_text(const std::vector<EfficiencyMatrix>& matrices) {
  std::string text;
  const std::vector<EfficiencyRow> classes = all_rows(matrices);
  for (std::size_t first = 0; first < matrices.size(); first += kBeside) {
    const std::size_t end = std::min(matrices.size(), first + kBeside);
    std::vector<TextColumn> columns{{.head = "share of the peak reached"}, {.head = "shape", .folds = true}};
    for (std::size_t i = first; i < end; ++i) columns.push_back({.head = matrices[i].chip, .right = true});
    TextTable rows;
    for (const EfficiencyRow& row : classes) {
      rows.push_back({row.op, row.shape});
      for (std::size_t i = first; i < end; ++i) rows.back().push_back(cell(row_like(matrices[i], row)));
    }
    text += (first > 0 ? "\n" : "") + fitted(columns, rows);
  }
  return text;
}

}  // namespace moebius
