// What has been measured of a plan so far, one JSON object a line, so that a calibration that was cut off
// goes on where it stopped. The first line names device, version and plan.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "hw/device_figures.h"
#include "workloads/cost/op_bench.h"

namespace moebius {

struct CaseResult {
  OpMeasurement measured;
  double took = 0;      // seconds that the measurement took, operands included
  std::string refused;  // why the device has no time for the case; empty: it has
};

struct JournalKey {
  std::string device, version;
  std::uint64_t plan = 0;
};

class CaseJournal {
 public:
  // Reads what is there, or begins a new one. A last line without an end is dropped: the machine stopped
  // while it was written. input_error for anything else that is no such journal, and for one of another
  // device, version or plan; run_error when the file cannot be written.
  CaseJournal(const std::string& path, const JournalKey& key);

  const CaseResult* find(const std::string& text) const;  // of a case; null: not measured yet
  const std::optional<DeviceFigures>& figures() const { return figures_; }
  double seconds_spent() const { return spent_; }   // by all measurements in it
  std::size_t resumed() const { return resumed_; }  // cases that stood in it when it was opened

  // Each is in the file when the call returns.
  void add(const std::string& text, const CaseResult& result);
  void add(const DeviceFigures& figures, double took);

  void remove();  // the work is done

 private:
  void read(const JournalKey& key);
  void write(const std::string& line);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::map<std::string, CaseResult> results_;
  std::optional<DeviceFigures> figures_;
  double spent_ = 0;
  std::size_t resumed_ = 0;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace moebius
