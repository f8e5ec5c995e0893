// The characters of a file, packed by gzip or not. Internal to chrome_reader.cpp.
#pragma once

#include <zlib.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/progress_bar.h"

namespace moebius::viz {

// Before anything else asks the system for something: the reason is that of this file.
inline gzFile opened(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw input_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return file;
}

// The characters of a file, unpacked where it is packed, block by block.
class Characters {
 public:
  explicit Characters(const std::string& path) : file_(opened(path), gzclose), block_(1 << 18) {
    gzbuffer(file_.get(), 1 << 18);
    std::error_code none;  // of a pipe
    bytes_ = static_cast<double>(std::filesystem::file_size(path, none));
    if (none) bytes_ = 0;
    fill();
  }
  bool at_end() const { return at_ == size_; }
  char now() const { return block_[at_]; }
  void next() {
    ++taken_;
    if (++at_ == size_) fill();
  }
  bool damaged() const { return failure_ != Z_OK; }
  bool cut() const { return failure_ == Z_BUF_ERROR; }
  std::int64_t taken() const { return taken_; }

 private:
  void fill() {
    const int got = gzread(file_.get(), block_.data(), static_cast<unsigned>(block_.size()));
    gzerror(file_.get(), &failure_);
    size_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    at_ = 0;
    if (bytes_ > 0) bar_.show(static_cast<double>(gzoffset(file_.get())) / bytes_);
  }

  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::vector<char> block_;
  std::size_t at_ = 0, size_ = 0;
  std::int64_t taken_ = 0;
  int failure_ = Z_OK;
  double bytes_ = 0;  // of the file; 0: not known
  ProgressBar bar_;
};

}  // namespace moebius::viz
