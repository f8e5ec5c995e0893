#include "workloads/table_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace moebius {

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
