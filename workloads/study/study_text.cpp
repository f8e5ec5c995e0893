// Tables of a study for people and for other programs.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "hw/json_text.h"
#include "workloads/report/number_text.h"
#include "workloads/report/report.h"
#include "workloads/study/study_points.h"
#include "workloads/study/study_table.h"

namespace moebius {

namespace {

std::string value_in(const CombinationRow& row, const std::string& pointer) {
  for (const Assignment& change : row.settings) {
    if (change.pointer == pointer) return plain(change.value);
  }
  return "-";
}

// Pointers of axes and cases that differ between rows, in the order in which rows tell them.
std::vector<std::string> pointers_of(const StudyTable& table) {
  std::vector<std::string> pointers;
  std::set<std::string>
      looked_at;  // the first row that has it tells: what is the same everywhere differs from none
  const auto differs = [&](const Assignment& change) {
    return std::any_of(table.rows.begin(), table.rows.end(), [&](const CombinationRow& row) {
      return value_in(row, change.pointer) != plain(change.value);
    });
  };
  for (const CombinationRow& row : table.rows) {
    for (const Assignment& change : row.settings) {
      if (looked_at.insert(change.pointer).second && differs(change)) pointers.push_back(change.pointer);
    }
  }
  return pointers;
}

std::string cell_of(const ColumnSpread& spread) {
  if (spread.count == 0) return "-";
  if (spread.low == spread.high) return figure_text(spread.mean);
  return fmt::format("{} [{}, {}]", figure_text(spread.mean), figure_text(spread.low),
                     figure_text(spread.high));
}

std::vector<std::string> cells_of(const CombinationRow& row, const std::vector<std::string>& pointers) {
  std::vector<std::string> cells;
  for (const std::string& pointer : pointers) cells.push_back(value_in(row, pointer));
  for (const ColumnSpread& spread : row.values) cells.push_back(cell_of(spread));
  if (row.failed > 0) cells.push_back(fmt::format("{} failed: {}", row.failed, row.failure));
  return cells;
}

std::string aligned(const std::vector<std::vector<std::string>>& lines, std::size_t columns) {
  std::vector<std::size_t> widths(columns, 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < std::min(columns, line.size()); ++i)
      widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row = " ";
    for (std::size_t i = 0; i < line.size(); ++i)
      row += i < columns ? fmt::format(" {:<{}}", line[i], widths[i] + 1) : fmt::format(" {}", line[i]);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

// Along its values; of what has no first one, over the mean of all, and of cases without a direction.
std::string change_text(const Influence& influence) {
  if (influence.change)
    return fmt::format("{:+.1f}% from its first value to its last", 100 * *influence.change);
  const double effect = 100 * influence.effect;
  return influence.pointer == "cases" ? fmt::format("{:.1f}% of the mean between them", effect)
                                      : fmt::format("{:+.1f}% of the mean over its range", effect);
}

std::string influences_text(const StudyTable& table) {
  std::string text;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    if (table.influences[column].empty()) continue;
    text += fmt::format("what moves {}:", table.columns[column]);
    for (const Influence& influence : table.influences[column]) {
      if (!influence.apart) {
        text += fmt::format("\n  {:<40} not told apart from the others by these points", influence.pointer);
        continue;
      }
      text += fmt::format("\n  {:<40} {:3.0f}% of the differences, {}", influence.pointer,
                          100 * influence.share, change_text(influence));
    }
    text += "\n";
  }
  return text;
}

std::string spread_json(const ColumnSpread& spread) {
  if (spread.count == 0) return "null";
  return fmt::format("{{\"mean\": {}, \"p10\": {}, \"p90\": {}, \"points\": {}}}", spread.mean, spread.low,
                     spread.high, spread.count);
}

std::string row_json(const StudyTable& table, const CombinationRow& row) {
  std::string settings, values;
  for (const Assignment& change : row.settings)
    settings +=
        fmt::format("{}{}: {}", settings.empty() ? "" : ", ", json_string(change.pointer), change.value);
  for (std::size_t i = 0; i < row.values.size(); ++i)
    values += fmt::format("{}{}: {}", i == 0 ? "" : ", ", json_string(table.columns[i]),
                          spread_json(row.values[i]));
  const std::string failure =
      row.failed > 0 ? fmt::format(", \"failed\": {}, \"failure\": {}", row.failed, json_string(row.failure))
                     : "";
  return fmt::format("    {{\"settings\": {{{}}}, \"columns\": {{{}}}{}}}", settings, values, failure);
}

std::string influences_json(const StudyTable& table) {
  std::string text;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::string rows;
    for (const Influence& influence : table.influences[column]) {
      const auto number = [&](double value) { return influence.apart ? fmt::format("{}", value) : "null"; };
      rows += fmt::format("{}{{\"pointer\": {}, \"variance_share\": {}, \"relative_effect\": {}}}",
                          rows.empty() ? "" : ", ", json_string(influence.pointer), number(influence.share),
                          number(influence.effect));
    }
    text += fmt::format("{}\n    {}: [{}]", column == 0 ? "" : ",", json_string(table.columns[column]), rows);
  }
  return text;
}

// RFC 4180.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

std::vector<std::string> pointers_of(const Study& study) {
  std::vector<std::string> pointers;
  for (const StudyAxis& axis : study.axes) pointers.push_back(axis.pointer);
  for (const auto& changes : study.cases) {
    for (const Assignment& change : changes) {
      if (std::find(pointers.begin(), pointers.end(), change.pointer) == pointers.end())
        pointers.push_back(change.pointer);
    }
  }
  for (const UncertainValue& value : study.uncertain) pointers.push_back(value.pointer);
  return pointers;
}

}  // namespace

std::string to_text(const Study& study, const StudyTable& table, std::size_t most) {
  const std::vector<std::string> pointers = pointers_of(table);
  std::vector<std::string> head = short_names(pointers);
  head.insert(head.end(), table.columns.begin(), table.columns.end());
  std::vector<std::vector<std::string>> lines{head};
  const std::size_t shown = std::min(most, table.rows.size());
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(cells_of(table.rows[i], pointers));
  std::string text = fmt::format("{}\n{} points: {} done, {} failed\n", study.name, grouped(table.points),
                                 grouped(table.done), grouped(table.failed));
  text += aligned(lines, head.size());
  if (shown < table.rows.size())
    text += fmt::format("  and {} more rows: --table shows them all\n", table.rows.size() - shown);
  return text + influences_text(table);
}

std::string to_json(const Study& study, const StudyTable& table) {
  std::string rows;
  for (const CombinationRow& row : table.rows)
    rows += fmt::format("{}{}", rows.empty() ? "\n" : ",\n", row_json(table, row));
  return fmt::format(
      "{{\n  \"study\": {},\n  \"points\": {},\n  \"done\": {},\n  \"failed\": {},\n  \"rows\": [{}\n  ],\n"
      "  \"influences\": {{{}\n  }}\n}}\n",
      json_string(study.name), table.points, table.done, table.failed, rows, influences_json(table));
}

std::string to_csv(const Study& study, const ResultsFile& results, std::int64_t number) {
  const std::vector<std::string> pointers = pointers_of(study);
  std::string text = "point";
  for (const std::string& pointer : pointers) text += fmt::format(",{}", csv_field(pointer));
  text += ",seed,status";
  for (const std::string& column : study.columns) text += fmt::format(",{}", csv_field(column));
  text += ",error\n";
  results.for_each(number, [&](const StudyRow& row, const StudyResult& result) {
    const StudyPoint point = point_of(study, row.point);
    text += std::to_string(row.point);
    for (const std::string& pointer : pointers) {
      const auto same = [&](const Assignment& change) { return change.pointer == pointer; };
      const auto at = std::find_if(point.settings.begin(), point.settings.end(), same);
      text += ',';
      if (at != point.settings.end()) text += csv_field(plain(at->value));
    }
    text += fmt::format(",{},{}", row.seed, result.done ? "done" : "failed");
    for (const std::string& column : study.columns) {
      const auto value = result.done ? report_value(result.text, column) : std::nullopt;
      text += value ? fmt::format(",{}", *value) : std::string(",");
    }
    text += fmt::format(",{}\n", result.done ? "" : csv_field(result.text));
  });
  return text;
}

}  // namespace moebius
