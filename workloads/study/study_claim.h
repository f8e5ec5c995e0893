// Who carries out a study of a results file: one process at a time (and those that it starts). Another study
// of the same file may be carried out meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hw/interrupted.h"

namespace moebius {

// A locked file "RESULTS.STUDY.lock" beside the results, with the process and its machine in it. The system
// gives the lock back however the process ends, so that a file which stays behind means nothing; children do
// not hold it.
class StudyClaim {
 public:
  // run_error that names the process and the machine that have it, or when no such file can be made.
  StudyClaim(const std::string& results, std::int64_t study);
  ~StudyClaim();
  StudyClaim(const StudyClaim&) = delete;
  StudyClaim& operator=(const StudyClaim&) = delete;

 private:
  std::string path_;
  std::optional<UnfinishedFile> unfinished_;
  int descriptor_ = -1;
};

}  // namespace moebius
