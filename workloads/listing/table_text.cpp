#include "workloads/listing/table_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "workloads/report/wrapped_text.h"

namespace moebius {

namespace {

constexpr std::size_t kIndent = 2;

std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    longest = std::max(longest, text_width(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

// Its parts of at most so many columns, broken at spaces; a longer word stays whole.
std::vector<std::string> folded(std::string_view cell, std::size_t columns) {
  std::vector<std::string> parts(1);
  while (!cell.empty()) {
    const std::size_t end = std::min(cell.find(' '), cell.size());
    const std::string_view word = cell.substr(0, end);
    if (!parts.back().empty() && text_width(parts.back()) + 1 + text_width(word) > columns)
      parts.emplace_back();
    if (!parts.back().empty()) parts.back() += ' ';
    parts.back() += word;
    cell.remove_prefix(std::min(end + 1, cell.size()));
  }
  return parts;
}

struct Widths {
  std::vector<std::size_t> columns;
  std::size_t gap = 2;
};

Widths widths_of(const std::vector<TextColumn>& columns, const TextTable& rows) {
  Widths widths;
  std::size_t all = kIndent, words = 0, folds = columns.size();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = text_width(columns[i].head);
    if (columns[i].folds) folds = i, words = width;
    for (const auto& row : rows) {
      width = std::max(width, text_width(row[i]));
      if (columns[i].folds) words = std::max(words, longest_word(row[i]));
    }
    widths.columns.push_back(width);
    all += width + (i == 0 ? 0 : widths.gap);
  }
  if (all <= kTextColumns) return widths;
  widths.gap = 1;
  all -= columns.size() - 1;
  if (folds == columns.size() || all <= kTextColumns) return widths;
  std::size_t& width = widths.columns[folds];
  const std::size_t over = std::min(width, all - kTextColumns);
  width = std::max(words, width - over);
  return widths;
}

std::string line_of(const std::vector<TextColumn>& columns, const std::vector<std::string>& cells,
                    const Widths& widths) {
  std::string line(kIndent, ' ');
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string room(widths.columns[i] - std::min(widths.columns[i], text_width(cells[i])), ' ');
    if (i > 0) line.append(widths.gap, ' ');
    line += columns[i].right ? room + cells[i] : cells[i] + room;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// One line, or as many as its cell that folds needs.
std::string lines_of(const std::vector<TextColumn>& columns, std::vector<std::string> cells,
                     const Widths& widths) {
  const auto folds = std::ranges::find(columns, true, &TextColumn::folds) - columns.begin();
  if (folds == std::ssize(columns)) return line_of(columns, cells, widths);
  std::string text;
  for (std::string& part : folded(cells[folds], widths.columns[folds])) {
    cells[folds] = std::move(part);
    text += line_of(columns, cells, widths);
    std::ranges::fill(cells, "");
  }
  return text;
}

}  // namespace

std::string fitted(const std::vector<TextColumn>& columns, const TextTable& rows) {
  const Widths widths = widths_of(columns, rows);
  std::vector<std::string> heads;
  for (const TextColumn& column : columns) heads.push_back(column.head);
  std::string text = lines_of(columns, heads, widths);
  for (const auto& row : rows) text += lines_of(columns, row, widths);
  return text;
}

std::string aligned(const TextTable& table) {
  std::vector<std::size_t> widths;
  for (const auto& row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string heading(const std::string& id, const std::vector<std::string>& aliases, std::string_view what) {
  const std::string also = aliases.empty() ? "" : fmt::format(", also called {}", fmt::join(aliases, ", "));
  return fmt::format("{}: {}{}\n\n", id, what, also);
}

}  // namespace moebius
