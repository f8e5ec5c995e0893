#include "viz/import/characters.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::viz {
namespace {

// Before anything else asks the system for something: the reason is that of this file.
gzFile opened(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw input_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return file;
}

}  // namespace

Characters::Characters(const std::string& path) : file_(opened(path), gzclose), block_(1 << 18) {
  gzbuffer(file_.get(), 1 << 18);
  std::error_code none;  // of a pipe
  bytes_ = static_cast<double>(std::filesystem::file_size(path, none));
  if (none) bytes_ = 0;
  fill();
}

bool Characters::damaged() const {
  return failure_ != Z_OK;
}

bool Characters::cut() const {
  return failure_ == Z_BUF_ERROR;
}

void Characters::fill() {
  const int got = gzread(file_.get(), block_.data(), static_cast<unsigned>(block_.size()));
  gzerror(file_.get(), &failure_);
  size_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  at_ = 0;
  if (bytes_ > 0) bar_.show(static_cast<double>(gzoffset(file_.get())) / bytes_);
}

}  // namespace moebius::viz
