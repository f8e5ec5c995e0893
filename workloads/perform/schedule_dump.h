// A schedule as text: each distinct fragment once, before its first submission, and every submission, in the
// order of issue. Equal schedules give equal files.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "hw/new_file.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

class ScheduleDump {
 public:
  explicit ScheduleDump(const std::string& path) : file_(path) {}  // errors, here and below: NewFile's

  void write(const Submission& submission);
  void close() { file_.finish(); }

 private:
  NewFile file_;
  std::set<std::uint64_t> written_;  // hashes of fragments
};

}  // namespace moebius
