// What was predicted beside what was measured, kept: every source of measurements that was run, with the
// error of each row. Intervals of reports (report/report_uncertainty.h), the tables of a README (page.h) and
// their coverage (coverage.h) are made of it. `moebius validate --record FILE` writes it; record.json ships
// with the binary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/document.h"

namespace moebius {

enum class AccuracyClass : std::uint8_t { kKernels, kCollectives, kTraining, kServing, kCache };
const std::vector<std::pair<std::string_view, AccuracyClass>>& accuracy_classes();  // by their names
std::string_view to_string(AccuracyClass of);

// One measured row, or one of evenly spaced quantiles of many.
struct AccuracyPoint {
  std::string name;  // empty: a quantile
  double error =
      0;  // ln(ours / measured), as times: below zero, ours is faster. Of rates the inverse is taken
  double parts = 0;  // what the errors of its kernels and collectives do to it, one deviation; 0: not told
};

// Rows that were measured in one campaign: they err together.
struct AccuracySource {
  AccuracyClass of = AccuracyClass::kTraining;
  std::string figure;              // "step time": rows of different figures are never put together
  std::string name;                // "Korthikanti et al. 2022"
  std::string link;                // what runs it: a file or folder from the root of the project
  bool calibration = false;        // something was fitted to its rows: they are shown and judge nothing
  std::vector<std::string> chips;  // catalog ids; empty: of no chip
  std::int64_t devices = 0;        // the most that a row has; 0: not told
  std::int64_t rows = 0;           // measured
  double worst = 0;                // of them, absolute; 0: `points` has it
  std::vector<AccuracyPoint> points = {};  // as many as rows, or their quantiles

  std::vector<double> errors() const;
};

struct AccuracyRecord {
  std::string date, commit;  // of the newest rows
  std::vector<AccuracySource> sources;

  // Test rows of a figure, in the order of the record.
  std::vector<const AccuracySource*> tests(AccuracyClass of, std::string_view figure) const;
  // The figures that a class has test rows of, in the order of the record.
  std::vector<std::string> figures(AccuracyClass of) const;
  // Puts `source` in the place of the one with its class, figure, name and split, or at the end of its class.
  void replace(AccuracySource source);
};

// More rows than that are kept as so many quantiles.
inline constexpr std::size_t kMostPoints = 40;
// Counts rows where nobody did; of more than kMostPoints, quantiles at (i + 1/2) / kMostPoints stay, and the
// worst.
void condense(AccuracySource& source);

AccuracyRecord read_record(const Document& document);  // input_error for what is none
const AccuracyRecord& shipped_record();
std::string record_text(const AccuracyRecord& record);  // JSON, ends with a newline

}  // namespace moebius
