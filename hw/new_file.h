// A file that gets its name when it is complete: until then, when something fails, and when the process is
// interrupted, what stood there stays. A symbolic link keeps pointing where it does. What is no regular file
// (a device, a pipe) is written to as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hw/interrupted.h"

namespace moebius {

class NewFile {
 public:
  // Errors, here and below: run_error "PATH: cannot be written: REASON", with the system's reason.
  explicit NewFile(const std::string& path);
  ~NewFile();  // what was not finished goes away
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes);  // after all that was written before
  void resize(std::uint64_t bytes);    // of a regular file, before write_at
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);
  void finish();  // from here the file stands under its name

 private:
  void flush();
  void put(std::string_view bytes);
  [[noreturn]] void fail() const;

  std::string path_, target_;  // as it was given; where links lead to
  std::string temporary_;      // empty: the target is written to
  std::string buffer_;
  std::optional<UnfinishedFile> unfinished_;
  int descriptor_ = -1;
};

// A whole file at once.
void write_file(const std::string& path, std::string_view text);

// input_error where an option would write over what is read, or over what another option writes. Files that
// are not there, and options that are not given, meet nothing.
void require_apart(std::string_view option, const std::string& path, const std::string& other);

// For those who will write later: run_error when no file can be written there now. Leaves nothing behind.
void require_writable(const std::string& path);

}  // namespace moebius
