// Comma-separated values with a header line, as measured tables are published. Fields may be quoted; nothing
// else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moebius {

struct CsvRow {
  int line = 0;      // in the file
  std::string text;  // the whole line
  std::vector<std::string> fields;
};

class Csv {
 public:
  // input_error for a file that cannot be read, is over 256 MiB, has a column twice, or a row with more or
  // fewer fields than the header.
  // A name that ends in .gz is unpacked. With `only`, rows with another first field are passed over unread.
  explicit Csv(const std::string& path, std::string_view only = "");

  const std::vector<CsvRow>& rows() const { return rows_; }
  const std::vector<std::string>& columns() const { return columns_; }  // of the header
  const std::string& text(const CsvRow& row, std::string_view column) const;
  double number(const CsvRow& row,
                std::string_view column) const;  // input_error when it is not one finite number
  // input_error when it is not a whole number from `least` on, 2^31 - 1 at most.
  std::int32_t whole(const CsvRow& row, std::string_view column, std::int32_t least = 0) const;
  // "FILE:LINE: COLUMN", for what else is wrong with a field.
  std::string place(const CsvRow& row, std::string_view column) const;
  bool has(std::string_view column) const;
  bool empty(const CsvRow& row, std::string_view column) const { return text(row, column).empty(); }

 private:
  std::string path_;
  std::vector<std::string> columns_;
  std::vector<CsvRow> rows_;
};

}  // namespace moebius
