// Whether intervals hold what they say: every source is left out in turn, and its rows are set beside the
// intervals that the other ones give.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/accuracy/error_spread.h"

namespace moebius {

// Of one figure.
struct FigureCoverage {
  AccuracyClass of = AccuracyClass::kTraining;
  std::string figure;
  int sources = 0;
  std::int64_t rows = 0;
  std::vector<double> inside;  // share of the rows of each source left out; empty: fewer than three sources
};

struct ClassCoverage {
  AccuracyClass of = AccuracyClass::kTraining;
  std::vector<FigureCoverage> figures;
  // Mean over the sources of all figures, each weighing as one; nothing where none can be left out.
  std::optional<double> share() const;
};

std::vector<ClassCoverage> coverage_of(const AccuracyRecord& record);  // of classes with test rows

}  // namespace moebius
