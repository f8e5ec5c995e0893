#include "workloads/calibration/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "hw/error.h"
#include "hw/json_text.h"
#include "workloads/calibration/gzip.h"

namespace moebius {
namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

std::string read_all(const std::string& path) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(path, failure);
  if (failure) throw input_error(fmt::format("{}: {}", path, failure.message()));
  if (size > kMostTableBytes)
    throw input_error(fmt::format("{}: expected at most {} bytes, found {}", path, kMostTableBytes, size));
  if (path.ends_with(".gz")) return read_gzip(path);
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (in.gcount() != static_cast<std::streamsize>(size))
    throw input_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return text;
}

std::string without_mark(std::string text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

void require_each_once(const std::vector<std::string>& columns, const std::string& path) {
  for (auto column = columns.begin(); column != columns.end(); ++column)
    if (!column->empty() && std::find(columns.begin(), column, *column) != column)
      throw input_error(
          fmt::format("{}:1: expected each column once, found {} again", path, json_excerpt(*column)));
}

bool starts_with_field(const std::string& line, std::string_view field) {
  return line.starts_with(field) && line.size() > field.size() && line[field.size()] == ',';
}

}  // namespace

Csv::Csv(const std::string& path, std::string_view only) : path_(path) {
  std::istringstream in(without_mark(read_all(path)));
  std::string line;
  if (!in || !std::getline(in, line))
    throw input_error(fmt::format("{}: expected a header line, found none", path));
  columns_ = fields_of(line);
  require_each_once(columns_, path);
  for (int number = 2; std::getline(in, line); ++number) {
    if (line.empty() || line == "\r" || !(only.empty() || starts_with_field(line, only))) continue;
    CsvRow row{number, line, fields_of(line)};
    if (row.fields.size() != columns_.size())
      throw input_error(fmt::format("{}:{}: expected {} fields, found {}", path, number, columns_.size(),
                                    row.fields.size()));
    rows_.push_back(std::move(row));
  }
}

bool Csv::has(std::string_view column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

const std::string& Csv::text(const CsvRow& row, std::string_view column) const {
  const auto at = std::find(columns_.begin(), columns_.end(), column);
  if (at == columns_.end())
    throw input_error(
        fmt::format("{}: expected a column \"{}\"{}", path_, column, suggestion(column, columns_)));
  return row.fields[static_cast<std::size_t>(at - columns_.begin())];
}

double Csv::number(const CsvRow& row, std::string_view column) const {
  const std::string& field = text(row, column);
  double value = 0;
  const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failure != std::errc{} || end != field.data() + field.size() || !std::isfinite(value))
    throw input_error(
        fmt::format("{}: expected a number, found {}", place(row, column), json_excerpt(field)));
  return value;
}

std::int32_t Csv::whole(const CsvRow& row, std::string_view column, std::int32_t least) const {
  const double value = number(row, column);
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  if (value < least || value > kMost || value != std::floor(value))
    throw input_error(fmt::format("{}: expected a whole number from {} to {}, found {}", place(row, column),
                                  least, kMost, json_excerpt(text(row, column))));
  return static_cast<std::int32_t>(value);
}

std::string Csv::place(const CsvRow& row, std::string_view column) const {
  return fmt::format("{}:{}: {}", path_, row.line, column);
}

}  // namespace moebius
