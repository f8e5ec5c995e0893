// The bytes of a file for reading: mapped, or owned.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace moebius {

class FileBytes {
 public:
  explicit FileBytes(const std::string& path);           // missing or not a regular file: input_error
  explicit FileBytes(std::span<const std::byte> bytes);  // copies them
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes();

  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  // The pages that lie inside may leave memory; they come back from the file when they are read again.
  void forget(std::size_t first, std::size_t size) const;

 private:
  void* mapping_ = nullptr;
  std::string owned_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace moebius
