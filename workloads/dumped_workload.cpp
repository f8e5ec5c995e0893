#include "workloads/dumped_workload.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "hw/error.h"

namespace moebius {

DumpedWorkload::DumpedWorkload(Workload& workload, std::string path)
    : workload_(workload),
      path_(std::move(path)),
      temporary_(fmt::format("{}.tmp.{}", path_, getpid())),
      file_(temporary_) {
  if (!file_) throw run_error(fmt::format("{}: cannot be written", path_));
}

DumpedWorkload::~DumpedWorkload() {
  if (file_.is_open()) std::remove(temporary_.c_str());
}

std::optional<Submission> DumpedWorkload::next(Time now) {
  std::optional<Submission> submission = workload_.next(now);
  if (!submission) return submission;
  if (written_.insert(submission->fragment->hash).second) file_ << dump(*submission->fragment);
  file_ << dump(*submission);
  return submission;
}

void DumpedWorkload::close() {
  file_.close();
  if (!file_ || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    std::remove(temporary_.c_str());
    throw run_error(fmt::format("{}: cannot be written", path_));
  }
}

}  // namespace moebius
