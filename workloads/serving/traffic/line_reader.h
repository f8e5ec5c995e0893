// A text file line by line, packed by gzip or not; no more than one line is in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace moebius {

class LineReader {
 public:
  explicit LineReader(const std::string& path);  // input_error: it cannot be read
  ~LineReader();

  // Without its end (LF or CRLF); false after the last one. input_error: a line of over 16 MiB, or packed
  // bytes that are cut or damaged.
  bool next(std::string& line);
  void begin_again();  // from the first line

  // "FILE:LINE: sentence", of the line that was given last; thrown as input_error.
  [[noreturn]] void fail(const std::string& sentence) const;

 private:
  struct Packed;
  bool fill();

  std::string path_;
  std::unique_ptr<Packed> packed_;
  std::string chunk_;
  std::size_t at_ = 0;
  std::int64_t number_ = 0;
};

}  // namespace moebius
