#include "workloads/calibration/links/error_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

double error_of(const MeasuredCollective& row, const CollectiveConstants& constants) {
  return std::abs(predicted(row, constants).seconds / row.seconds - 1);
}

double within(std::vector<double>& sorted, double share) {
  CHECK(!sorted.empty(), "no rows");
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * sorted.size()))];
}

struct Cell {
  std::vector<double> errors;
  bool fitted = false;
};

std::string cell_text(std::map<int, Cell>& cells, int devices) {
  const auto at = cells.find(devices);
  if (at == cells.end()) return "-";
  Cell& cell = at->second;
  std::sort(cell.errors.begin(), cell.errors.end());
  return fmt::format(fmt::runtime(cell.fitted ? "({:.1f} / {:.1f})" : "{:.1f} / {:.1f}"),
                     100 * within(cell.errors, 0.5), 100 * within(cell.errors, 0.95));
}

}  // namespace

double CollectiveErrors::at(double share) const {
  std::vector<double> sorted = errors;
  return within(sorted, share);
}

CollectiveErrors collective_errors(const std::vector<MeasuredCollective>& rows,
                                   const CollectiveConstants& constants) {
  CollectiveErrors all;
  for (const MeasuredCollective& row : rows) {
    if (row.eager) {
      ++all.eager;
    } else if (row.stands_off) {
      all.stand_off.push_back(&row);
    } else if (!is_fitted_to(row, constants)) {
      all.errors.push_back(error_of(row, constants));
    }
  }
  std::sort(all.errors.begin(), all.errors.end());
  return all;
}

std::string collective_error_table(const std::vector<MeasuredCollective>& rows,
                                   const CollectiveConstants& constants) {
  std::map<std::tuple<std::string, std::string, std::string>, std::map<int, Cell>> lines;
  for (const MeasuredCollective& row : rows) {
    if (row.eager || row.stands_off || row.dtype == "int8") continue;
    Cell& cell =
        lines[{row.accelerator, row.family, std::string(to_string(row.call.kind))}][row.call.devices];
    cell.errors.push_back(error_of(row, constants));
    cell.fitted = is_fitted_to(row, constants);
  }
  std::string text = "| chip | library | operation | 2 | 4 | 8 |\n|---|---|---|---|---|---|\n";
  for (auto& [key, cells] : lines)
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", std::get<0>(key), std::get<1>(key),
                        std::get<2>(key), cell_text(cells, 2), cell_text(cells, 4), cell_text(cells, 8));
  return text;
}

}  // namespace moebius
