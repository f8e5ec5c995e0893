// A file that is written from front to back through a buffer, under a temporary name beside it until it is
// whole.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace moebius::viz {

inline constexpr std::size_t kForgetEvery = 1 << 16;  // spans: those that are written leave memory

class OutputFile {
 public:
  explicit OutputFile(const std::string& path);  // errors, here and below: run_error
  ~OutputFile();                                 // removes what was not finished
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void add(std::string_view text) {
    if (buffer_.size() + text.size() > kBufferBytes) flush();
    buffer_ += text;
  }
  void add(std::int64_t number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
    add(std::string_view(digits, static_cast<std::size_t>(end - digits)));
  }
  void finish();  // from here the file stands under its name

 private:
  static constexpr std::size_t kBufferBytes = 1 << 20;
  void flush();
  [[noreturn]] void fail();

  std::string path_, temporary_, buffer_;
  int descriptor_ = -1;
};

}  // namespace moebius::viz
