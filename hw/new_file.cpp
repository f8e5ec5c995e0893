#include "hw/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "hw/error.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr int kMostLinks = 40;  // of one path, as the system has it

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// "/dev/stdout" goes behind what stands there, even where that is a file; -1: of any other path.
int open_stream(const std::string& path) {
  struct stat there {};
  struct stat stream {};
  if (stat(path.c_str(), &there) != 0) return -1;
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO})
    if (fstat(descriptor, &stream) == 0 && same_file(there, stream)) return dup(descriptor);
  return -1;
}

bool is_no_regular_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status);
}

// Of the name itself: links above it lead wherever they do. Empty: links in a ring.
std::string end_of_links(const std::string& path) {
  fs::path end(path);
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!fs::is_symlink(fs::symlink_status(end, error))) return end.string();
    end = end.parent_path() / fs::read_symlink(end, error);
  }
  errno = ELOOP;
  return "";
}

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path) {
  descriptor_ = open_stream(path);
  if (descriptor_ >= 0) return;
  if (is_no_regular_file(path)) {
    descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail();
    return;
  }
  target_ = end_of_links(path);
  if (target_.empty()) fail();
  temporary_ = fmt::format("{}.tmp.{}", target_, getpid());
  unfinished_.emplace(temporary_);
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail();
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) {
    put(bytes);
  } else {
    buffer_ += bytes;
  }
}

void NewFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void NewFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void NewFile::resize(std::uint64_t bytes) {
  if (!temporary_.empty() && ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail();
}

void NewFile::write_at(std::uint64_t offset, const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(descriptor_, next, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail();
    next += written;
    offset += static_cast<std::uint64_t>(written);
    bytes -= static_cast<std::size_t>(written);
  }
}

void NewFile::finish() {
  flush();
  if (close(std::exchange(descriptor_, -1)) != 0) fail();
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail();
  temporary_.clear();
}

void NewFile::fail() const {
  throw run_error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

void write_file(const std::string& path, std::string_view text) {
  NewFile file(path);
  file.write(text);
  file.finish();
}

void require_apart(std::string_view option, const std::string& path, const std::string& other) {
  if (path.empty() || other.empty()) return;
  std::error_code failed;
  const bool same = path == other || std::filesystem::equivalent(path, other, failed);
  if (same && !std::filesystem::is_directory(path, failed) && !std::filesystem::is_other(path, failed))
    throw input_error(fmt::format("{}: expected another file than {}, found {}", option, other, path));
}

void require_writable(const std::string& path) {
  if (!is_no_regular_file(path)) {
    const NewFile tried(path);
  } else if (fs::is_directory(path) || access(path.c_str(), W_OK) != 0) {
    const int reason = fs::is_directory(path) ? EISDIR : errno;
    throw run_error(fmt::format("{}: cannot be written: {}", path, std::strerror(reason)));
  }
}

}  // namespace moebius
