#include "hw/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

FileBytes::FileBytes(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // does not hang on a pipe
  if (descriptor < 0) throw input_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  struct stat status;
  const bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (regular && status.st_size > 0) {
    size_ = static_cast<std::size_t>(status.st_size);
    mapping_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  const int reason = errno;
  close(descriptor);
  if (!regular) throw input_error(fmt::format("{}: expected a file, found something else", path));
  if (mapping_ == MAP_FAILED)
    throw input_error(fmt::format("{}: cannot be mapped: {}", path, std::strerror(reason)));
  data_ = static_cast<const char*>(mapping_);
}

FileBytes::FileBytes(std::span<const std::byte> bytes)
    : owned_(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      data_(owned_.data()),
      size_(bytes.size()) {}

void FileBytes::forget(std::size_t first, std::size_t size) const {
  if (mapping_ == nullptr) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t begin = (first + page - 1) / page * page, end = (first + size) / page * page;
  if (begin < end) madvise(static_cast<char*>(mapping_) + begin, end - begin, MADV_DONTNEED);
}

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) munmap(mapping_, size_);
}

}  // namespace moebius
