// A workload that writes down what it issues: each distinct fragment once, then every submission, in the
// order of issue. Equal schedules give equal files.
#pragma once

#include <fstream>
#include <set>
#include <string>

#include "workloads/schedule/executor.h"

namespace moebius {

class DumpedWorkload : public Workload {
 public:
  // Writes to a temporary name beside `path`; close() renames it. Errors are run_error.
  DumpedWorkload(Workload& workload, std::string path);
  ~DumpedWorkload() override;

  const Layout& layout() const override { return workload_.layout(); }
  std::optional<Submission> next(Time now) override;
  void completed(const Completion& completion) override { workload_.completed(completion); }
  bool done() const override { return workload_.done(); }
  double progress() const override { return workload_.progress(); }

  void close();

 private:
  Workload& workload_;
  std::string path_, temporary_;
  std::ofstream file_;
  std::set<std::uint64_t> written_;  // hashes of fragments
};

}  // namespace moebius
