#include "workloads/checkpoint/new_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJournal = "journal";

[[noreturn]] void cannot_write(const std::string& path, const std::error_code& error) {
  throw run_error(fmt::format("{}: cannot be written: {}", path, error.message()));
}

// "out/" and "out" are the same.
std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// "out.old", or a name like it that nobody has: what stands there is somebody's.
std::string name_beside(const std::string& path) {
  std::error_code error;
  std::string name = path + ".old";
  for (int i = 2; fs::exists(fs::symlink_status(name, error)); ++i) name = fmt::format("{}.old.{}", path, i);
  return name;
}

}  // namespace

void require_new_directory(const std::string& wanted) {
  std::error_code error;
  if (!fs::exists(wanted, error)) return;
  const bool empty = fs::is_directory(wanted, error) && fs::is_empty(wanted, error);
  if (!empty)
    throw input_error(fmt::format("{}: expected a new or empty directory, found something there", wanted));
}

NewDirectory::NewDirectory(const std::string& wanted, const DirectoryPlan& plan)
    : wanted_(without_slash(wanted)), plan_(plan) {
  if (!plan_.replace) require_new_directory(wanted_);
  const bool lasting = !plan_.journal.empty();
  partial_ = lasting ? wanted_ + ".partial" : fmt::format("{}.partial.{}", wanted_, getpid());
  std::error_code error;
  fs::create_directories(partial_, error);
  if (error) cannot_write(wanted_, error);
  if (lasting) open_journal();
}

// Of other words, or of none: what stands there belongs to something else that was never finished.
void NewDirectory::open_journal() {
  const std::string path = this->path(kJournal);
  journal_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (journal_ < 0) cannot_write(path, std::error_code(errno, std::generic_category()));
  if (flock(journal_, LOCK_EX | LOCK_NB) != 0) {
    close(journal_);
    throw run_error(fmt::format("{}: another process is writing there", partial_));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  if (words == plan_.journal) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(partial_)) {
    std::error_code ignored;  // what cannot be removed shows when it is written over
    if (entry.path().filename() != kJournal) fs::remove_all(entry.path(), ignored);
  }
  const auto size = static_cast<ssize_t>(plan_.journal.size());
  const bool written = ftruncate(journal_, 0) == 0 && pwrite(journal_, plan_.journal.data(), size, 0) == size;
  if (written) return;
  const std::error_code reason(errno, std::generic_category());
  close(journal_);
  std::error_code ignored;
  fs::remove_all(partial_, ignored);
  cannot_write(path, reason);
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;  // nothing can be done about a directory that does not go away
  if (!partial_.empty() && !kept_) fs::remove_all(partial_, ignored);
  if (journal_ >= 0) close(journal_);
}

void NewDirectory::commit() {
  std::error_code error;
  std::string old;
  if (plan_.replace && fs::exists(wanted_, error)) {
    old = name_beside(wanted_);
    fs::rename(wanted_, old, error);
    if (error) cannot_write(wanted_, error);
  }
  if (journal_ >= 0) fs::remove(path(kJournal), error);
  fs::rename(partial_, wanted_, error);
  if (error) cannot_write(wanted_, error);
  partial_.clear();
  if (!old.empty()) fs::remove_all(old, error);
}

}  // namespace moebius
