// The record for people: one table a class, test rows and calibration rows apart, and how much of what was
// measured lies inside the intervals.
#pragma once

#include <string>

#include "workloads/accuracy/record.h"

namespace moebius {

// Errors of times, ours over measured less one.
struct SourceErrors {
  double median = 0, p90 = 0, worst = 0;  // of absolute ones
  double bias = 0;                        // the median of signed ones: below zero, ours is faster
};
SourceErrors errors_of(const AccuracySource& source);
// Of several, each weighing as one.
SourceErrors errors_of(const std::vector<const AccuracySource*>& sources);

// Markdown, for the section ACCURACY of the README. Figures with many sources stand in one line.
std::string accuracy_section(const AccuracyRecord& record);
// Markdown: every source, and every row that has a name, with links. `up` leads from the page to the root:
// "../../".
std::string accuracy_rows(const AccuracyRecord& record, const std::string& up);
// The same for a terminal, without rows.
std::string accuracy_text(const AccuracyRecord& record);

}  // namespace moebius
