// Tables for people.
#pragma once

#include <string>
#include <vector>

namespace moebius {

using TextTable = std::vector<std::vector<std::string>>;

// Columns as wide as their widest cell; the first row is the head.
std::string aligned(const TextTable& table);

struct TextColumn {
  std::string head;
  bool right = false;  // numbers
  bool folds = false;  // of one: its cells go on below themselves where lines would be wider than terminals
};
// Indented by two columns and no wider than kTextColumns, where its words let it.
std::string fitted(const std::vector<TextColumn>& columns, const TextTable& rows);

// "h800-sxm: accelerator, NVIDIA, also called h800" and an empty line.
std::string heading(const std::string& id, const std::vector<std::string>& aliases, std::string_view what);

}  // namespace moebius
