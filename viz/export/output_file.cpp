#include "viz/export/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "hw/error.h"

namespace moebius::viz {

OutputFile::OutputFile(const std::string& path)
    : path_(path), temporary_(fmt::format("{}.tmp.{}", path, getpid())) {
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail();
  buffer_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  std::remove(temporary_.c_str());
}

void OutputFile::flush() {
  for (std::size_t written = 0; written < buffer_.size();) {
    const ssize_t now = write(descriptor_, buffer_.data() + written, buffer_.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) fail();
    written += static_cast<std::size_t>(now);
  }
  buffer_.clear();
}

void OutputFile::finish() {
  flush();
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    std::remove(temporary_.c_str());
    errno = reason;
    fail();
  }
}

void OutputFile::fail() {
  throw run_error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

}  // namespace moebius::viz
