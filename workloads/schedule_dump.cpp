#include "workloads/schedule_dump.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "hw/error.h"

namespace moebius {

ScheduleDump::ScheduleDump(std::string path)
    : path_(std::move(path)), temporary_(fmt::format("{}.tmp.{}", path_, getpid())), file_(temporary_) {
  if (!file_) throw run_error(fmt::format("{}: cannot be written", path_));
}

ScheduleDump::~ScheduleDump() {
  if (file_.is_open()) std::remove(temporary_.c_str());
}

void ScheduleDump::write(const Submission& submission) {
  if (written_.insert(submission.fragment->hash).second) file_ << dump(*submission.fragment);
  file_ << dump(submission);
}

void ScheduleDump::close() {
  file_.close();
  if (file_ && std::rename(temporary_.c_str(), path_.c_str()) == 0) return;
  std::remove(temporary_.c_str());
  throw run_error(fmt::format("{}: cannot be written", path_));
}

}  // namespace moebius
