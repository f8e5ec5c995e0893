#include "workloads/checkpoint/new_directory.h"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const std::string& path, const std::error_code& error) {
  throw run_error(fmt::format("{}: cannot be written: {}", path, error.message()));
}

// "out/" and "out" are the same.
std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

void require_new_directory(const std::string& wanted) {
  std::error_code error;
  if (!fs::exists(wanted, error)) return;
  const bool empty = fs::is_directory(wanted, error) && fs::is_empty(wanted, error);
  if (!empty)
    throw input_error(fmt::format("{}: expected a new or empty directory, found something there", wanted));
}

NewDirectory::NewDirectory(const std::string& wanted, bool replace)
    : wanted_(without_slash(wanted)), replace_(replace) {
  if (!replace) require_new_directory(wanted_);
  partial_ = fmt::format("{}.partial.{}", wanted_, getpid());
  std::error_code error;
  fs::create_directories(partial_, error);
  if (error) cannot_write(wanted_, error);
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;  // nothing can be done about a directory that does not go away
  if (!partial_.empty()) fs::remove_all(partial_, ignored);
}

void NewDirectory::commit() {
  std::error_code error;
  const std::string old = wanted_ + ".old";
  if (replace_ && fs::exists(wanted_, error)) {
    fs::remove_all(old, error);
    fs::rename(wanted_, old, error);
    if (error) cannot_write(wanted_, error);
  }
  fs::rename(partial_, wanted_, error);
  if (error) cannot_write(wanted_, error);
  partial_.clear();
  if (replace_) fs::remove_all(old, error);
}

}  // namespace moebius
