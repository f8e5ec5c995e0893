// A file that is written from front to back, number by number.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "hw/new_file.h"

namespace moebius::viz {

inline constexpr std::size_t kForgetEvery = 1 << 16;  // spans: those that are written leave memory
inline constexpr std::size_t kShowEvery = 1 << 12;    // the same, until the bar moves

class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : file_(path) { buffer_.reserve(kBufferBytes); }

  void add(std::string_view text) {
    if (buffer_.size() + text.size() > kBufferBytes) flush();
    buffer_ += text;
  }
  void add(std::int64_t number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
    add(std::string_view(digits, static_cast<std::size_t>(end - digits)));
  }
  void finish() {
    flush();
    file_.finish();
  }

 private:
  static constexpr std::size_t kBufferBytes = 1 << 16;
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

  NewFile file_;
  std::string buffer_;
};

}  // namespace moebius::viz
