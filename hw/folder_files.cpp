#include "hw/folder_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

using Paths = std::vector<fs::path>;

[[noreturn]] void cannot_read(const fs::path& path, const std::error_code& error) {
  throw input_error(fmt::format("{}: cannot be read: {}", path.string(), error.message()));
}

// Links that lead nowhere are told when they are read.
bool is_file(const fs::directory_entry& entry) {
  std::error_code ignored;
  const fs::file_type type = entry.status(ignored).type();
  return type == fs::file_type::regular || type == fs::file_type::not_found;
}

void add_files(const fs::path& folder, std::string_view extension, bool below, Paths& files) {
  std::error_code error, ignored;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->is_directory(ignored)) {
      if (below && !at->is_symlink(ignored)) add_files(at->path(), extension, below, files);
    } else if (at->path().extension() == extension && is_file(*at)) {
      files.push_back(at->path());
    }
  }
  if (error) cannot_read(folder, error);
}

Paths sorted_files(const fs::path& folder, std::string_view extension, bool below) {
  Paths files;
  add_files(folder, extension, below, files);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Paths files_in(const fs::path& folder, std::string_view extension) {
  return sorted_files(folder, extension, false);
}

Paths files_below(const fs::path& folder, std::string_view extension) {
  return sorted_files(folder, extension, true);
}

bool stands(const fs::path& path) {
  std::error_code error;
  const bool found = fs::exists(path, error);
  if (error) cannot_read(path, error);
  return found;
}

}  // namespace moebius
