// A schedule as text: each distinct fragment once, before its first submission, and every submission, in the
// order of issue. Equal schedules give equal files.
#pragma once

#include <cstdint>
#include <fstream>
#include <set>
#include <string>

#include "workloads/schedule/fragment.h"

namespace moebius {

class ScheduleDump {
 public:
  // Writes to a temporary name beside `path`; close() renames it. Errors are run_error; nothing half-written
  // stays.
  explicit ScheduleDump(std::string path);
  ~ScheduleDump();
  ScheduleDump(const ScheduleDump&) = delete;
  ScheduleDump& operator=(const ScheduleDump&) = delete;

  void write(const Submission& submission);
  void close();

 private:
  std::string path_, temporary_;
  std::ofstream file_;
  std::set<std::uint64_t> written_;  // hashes of fragments
};

}  // namespace moebius
