// How far the headline figures of a simulated run can be trusted, told by what was measured before: each lies
// in an interval that held four in five measured rows of its class (accuracy/error_spread.h), widened or
// narrowed by what the run's own kernels and collectives are known to err. What nothing was measured of is
// said in a sentence.
#pragma once

#include <string>
#include <vector>

#include "workloads/accuracy/record.h"
#include "workloads/report/report.h"

namespace moebius {

struct FigureInterval {
  std::string key;  // of the report: "step_time_s", "ttft_s.mean"
  double value = 0, low = 0, high = 0;
  AccuracyClass of = AccuracyClass::kTraining;
  std::string figure;  // of the record: "step time"
  int sources = 0;
  std::int64_t rows = 0;  // that it is told by
};

struct Uncertainty {
  std::vector<FigureInterval> figures;
  std::vector<std::string> outside;  // of what was validated: sentences
};

// Nothing of runs that were executed, of emulated ones whose compute was measured on another chip than the
// scenario's, and of figures that fewer than two sources tell.
Uncertainty uncertainty_of(const Report& report, const AccuracyRecord& record);

// What the errors of its kernels and collectives do to a run, one deviation of the logarithm: those of the
// kernels as interval_figures() tells them, those of the collectives by their spread in the record over the
// exposed share (nothing while one source alone tells them: then they are in the spread of the runs).
double deviation_of_parts(const Report& report);

// The value of the report's key "uncertainty": origins of busy time, the kernels' interval, the figures'
// intervals.
std::string uncertainty_json(const Report& report);
std::string uncertainty_text(const Report& report);  // lines; empty where there is nothing to tell

}  // namespace moebius
