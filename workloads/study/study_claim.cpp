#include "workloads/study/study_claim.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

std::string this_process() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", getpid(), host.data());
}

std::string text_of(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t size = pread(descriptor, text.data(), text.size() - 1, 0);
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "another process";
}

// Of the process, not of the open file: workers that outlive a sweep for a moment do not keep it.
bool lock(int descriptor) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return fcntl(descriptor, F_SETLK, &whole) == 0;
}

// Who had it may have removed it before it was locked here.
bool still_named(int descriptor, const std::string& path) {
  struct stat opened {
  }, named{};
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

StudyClaim::StudyClaim(const std::string& results, std::int64_t study)
    : path_(fmt::format("{}.{}.lock", results, study)) {
  for (bool mine = false; !mine;) {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0)
      throw run_error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
    if (!lock(descriptor_)) {
      const std::string other = text_of(descriptor_);
      close(descriptor_);
      throw run_error(
          fmt::format("{}: {} carries out this study: expected it to end, or another --db", results, other));
    }
    mine = still_named(descriptor_, path_);
    if (!mine) close(descriptor_);
  }
  unfinished_.emplace(path_);
  const std::string words = this_process();
  const bool written =
      ftruncate(descriptor_, 0) == 0 && pwrite(descriptor_, words.data(), words.size(), 0) > 0;
  static_cast<void>(written);  // on a full disk it is told of nobody by name
}

StudyClaim::~StudyClaim() {
  unlink(path_.c_str());
  close(descriptor_);
}

}  // namespace moebius
